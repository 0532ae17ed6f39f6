/* How times grow when the work doubles. Each sample is a process of its own, as a command that somebody runs is: every
 * size pays for the memory that it touches. What a virtual machine adds for pages that its host has taken back, six
 * times the cost of others, would be charged to whoever comes to them first: they are touched before. */
#include "bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct rounds {
  double values[BENCH_MOST_SIZES][BENCH_MOST_QUANTITIES][BENCH_MOST_SAMPLES];
  uint64_t shown[BENCH_MOST_SIZES];
  uint64_t most; /**< bytes of the largest process so far */
} rounds;

/* ---- the process of one sample ---- */

static const char *const sample_option = "--grow";

bool bench_is_sample(int argc, char **argv) { return argc == 3 && strcmp(argv[1], sample_option) == 0; }

int bench_sample(const char *size, bench_grow *run) {
  double values[BENCH_MOST_QUANTITIES] = {0};
  uint64_t shown = 0;
  struct rusage usage;
  if (!run(strtoull(size, NULL, 10), values, &shown) || getrusage(RUSAGE_SELF, &usage) != 0) return 1;
  printf("%" PRIu64 " %" PRIu64, shown, (uint64_t)usage.ru_maxrss * 1024);
  for (uint32_t q = 0; q < BENCH_MOST_QUANTITIES; q++) printf(" %.17g", values[q]);
  return putchar('\n') == '\n' && fflush(stdout) == 0 ? 0 : 1;
}

/* The pages that the sample will be given are those that were given back last. */
static void touch(uint64_t bytes) {
  if (bytes == 0) return;
  char *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return;
  weft_memory_will_fill(data, bytes);
  memset(data, 1, bytes);
  munmap(data, bytes);
}

static bool run_size(const bench_growth *g, uint32_t size, uint32_t round, rounds *r) {
  char own[1024] = "", command[1200];
  if (readlink("/proc/self/exe", own, sizeof own - 1) < 0) return false;
  snprintf(command, sizeof command, "'%s' %s %" PRIu64, own, sample_option, g->least << size);
  touch(r->most);
  FILE *output = popen(command, "r");
  if (!output) return false;
  uint64_t bytes = 0;
  bool read = fscanf(output, "%" SCNu64 " %" SCNu64, &r->shown[size], &bytes) == 2;
  for (uint32_t q = 0; q < g->quantity_count; q++)
    read = read && fscanf(output, "%lf", &r->values[size][q][round]) == 1;
  r->most = weft_max_u64(r->most, bytes);
  fscanf(output, "%*[^\n]");
  return pclose(output) == 0 && read;
}

/* ---- all samples ---- */

/* The greatest first, uncounted. Then rising and falling in turn: no size always follows the same other one. */
static bool run_all(const bench_growth *g, rounds *r) {
  if (!run_size(g, g->sizes - 1, 0, r)) return false;
  for (uint32_t round = 0; round < g->rounds; round++)
    for (uint32_t i = 0; i < g->sizes; i++)
      if (!run_size(g, round % 2 ? g->sizes - 1 - i : i, round, r)) return false;
  return true;
}

static bench_pair pair_of(const bench_growth *g, const rounds *r, uint32_t quantity, uint32_t size) {
  bench_pair pair = {.count = g->rounds};
  for (uint32_t i = 0; i < g->rounds; i++) {
    pair.weft[i] = r->values[size][quantity][i];
    pair.peer[i] = r->values[size - 1][quantity][i];
  }
  return pair;
}

static double growth_of(const bench_pair *pair) {
  double quotients[BENCH_MOST_SAMPLES];
  for (uint32_t i = 0; i < pair->count; i++) quotients[i] = pair->weft[i] / pair->peer[i];
  return bench_median(quotients, pair->count);
}

static uint32_t worst_of(const bench_growth *g, const rounds *r, uint32_t quantity) {
  uint32_t worst = 1;
  double most = 0;
  for (uint32_t size = 1; size < g->sizes; size++) {
    bench_pair pair = pair_of(g, r, quantity, size);
    double growth = growth_of(&pair);
    if (growth <= most) continue;
    most = growth;
    worst = size;
  }
  return worst;
}

bool bench_measure_growth(bench *b, const bench_growth *g) {
  static rounds r;
  if (!run_all(g, &r)) return false;
  for (uint32_t q = 0; q < g->quantity_count; q++) {
    const bench_quantity *quantity = &g->quantities[q];
    uint32_t worst = worst_of(g, &r, q);
    for (uint32_t size = 1; size < g->sizes; size++) {
      char what[64], peer[40];
      snprintf(what, sizeof what, "%s, %llu stages", quantity->name, (unsigned long long)r.shown[size]);
      snprintf(peer, sizeof peer, "%llu stages", (unsigned long long)r.shown[size - 1]);
      bench_pair pair = pair_of(g, &r, q, size);
      bench_report(b,
                   &(bench_row){.figure = size == worst ? quantity->figure : NULL,
                                .what = what,
                                .peer = peer,
                                .unit = quantity->unit,
                                .scale = quantity->scale},
                   &pair);
    }
  }
  return true;
}
