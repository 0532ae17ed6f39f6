#include "bench.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- beginning and end ---------------------------------------------------------------------------------------------
 */

static const char *const steering[] = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"};

/* A library reads its environment while it is loaded, before main. */
void bench_environment(char **argv) {
  bool found = false;
  for (size_t i = 0; i < sizeof steering / sizeof *steering; i++) {
    found = found || getenv(steering[i]);
    unsetenv(steering[i]);
  }
  if (found) execv("/proc/self/exe", argv);
}

static bool weft_beside(bench *b) {
  ssize_t length = readlink("/proc/self/exe", b->weft_path, sizeof b->weft_path - 32);
  if (length <= 0) return false;
  b->weft_path[length] = 0;
  for (int up = 0; up < 2; up++) {
    char *slash = strrchr(b->weft_path, '/');
    if (!slash) return false;
    *slash = 0;
  }
  strcat(b->weft_path, "/tools/weft");
  b->weft = b->weft_path;
  return true;
}

bool bench_begin(bench *b, const char *group, uint32_t rank, int argc, char **argv) {
  *b = (bench){.group = group, .speaks = rank == 0, .samples = 11, .least = 0.05, .rest = 0.04};
  const char *csv = NULL;
  weft_beside(b);
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--quick") == 0) {
      b->quick = true;
    } else if (strcmp(argv[i], "--csv") == 0 && i + 1 < argc) {
      csv = argv[++i];
    } else if (strcmp(argv[i], "--weft") == 0 && i + 1 < argc) {
      b->weft = argv[++i];
    } else {
      if (b->speaks) fprintf(stderr, "usage: %s [--quick] [--csv FILE] [--weft COMMAND]\n", argv[0]);
      return false;
    }
  }
  if (b->quick) {
    b->samples = 3;
    b->least = 0.002;
    b->rest = 0.005;
  }
  if (csv && b->speaks && !(b->csv = fopen(csv, "w"))) {
    fprintf(stderr, "%s: %s: %s\n", argv[0], csv, strerror(errno));
    return false;
  }
  return true;
}

static void processor(char *name, size_t size) {
  snprintf(name, size, "unknown processor");
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[256];
  while (file && fgets(line, sizeof line, file)) {
    char *colon = strchr(line, ':');
    if (!colon || strncmp(line, "model name", 10) != 0) continue;
    line[strcspn(line, "\n")] = 0;
    snprintf(name, size, "%s", colon + 2);
    break;
  }
  if (file) fclose(file);
}

static int cores(void) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

static const char *const csv_columns = "group,case,figure,unit,weft_min,weft_median,weft_max,peer,peer_min,peer_median,"
                                       "peer_max,speed_min,speed_median,speed_max";

void bench_heading(bench *b, const char *about, const char *peers, const char *kernels) {
  if (!b->speaks) return;
  char name[160], machine[400];
  processor(name, sizeof name);
  int core_count = cores();
  snprintf(machine, sizeof machine, "%s, %d core%s%s%s", name, core_count, core_count == 1 ? "" : "s",
           kernels ? ", weft kernels " : "", kernels ? kernels : "");
  printf("%s: %s\n  %s\n  peers: %s; %u samples a side, in turn\n\n", b->group, about, machine, peers, b->samples);
  printf("  %-38s %-8s %26s  %-24s %26s  %s\n", "case", "unit", "weft: median (min, max)", "peer", "median (min, max)",
         "speed: median (min, max)");
  fflush(stdout);
  if (b->csv) fprintf(b->csv, "# %s; peers: %s; %u samples a side\n%s\n", machine, peers, b->samples, csv_columns);
}

/* ---- timing --------------------------------------------------------------------------------------------------------
 */

double bench_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(double *values, uint32_t count) {
  if (count == 0) return 0;
  qsort(values, count, sizeof *values, ascending);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static void rest(double seconds) {
  double whole = floor(seconds);
  nanosleep(&(struct timespec){.tv_sec = (time_t)whole, .tv_nsec = (long)((seconds - whole) * 1e9)}, NULL);
}

enum { MOST_CALLS = 1000, LEAST_CALLS = 3 };

static double sample(const bench *b, const bench_work *work) {
  double calls[MOST_CALLS];
  uint32_t count = 0;
  if (work->threads > 1) rest(b->rest);
  work->run(work->context);
  double begun = bench_seconds(), before = begun;
  while (count < MOST_CALLS && (count < LEAST_CALLS || before - begun < b->least)) {
    work->run(work->context);
    double now = bench_seconds();
    calls[count++] = now - before;
    before = now;
  }
  return bench_median(calls, count);
}

void bench_measure(const bench *b, const bench_work *weft, const bench_work *peer, bench_pair *pair) {
  pair->count = b->samples;
  for (uint32_t i = 0; i < b->samples; i++) {
    pair->weft[i] = sample(b, weft);
    pair->peer[i] = peer ? sample(b, peer) : 0;
  }
}

void bench_gather(const bench *b, const double *weft, const double *peer, uint32_t calls, bench_pair *pair) {
  enum { MOST = 4096 };
  double values[2][MOST];
  pair->count = b->samples < calls ? b->samples : calls;
  for (uint32_t i = 0; i < pair->count; i++) {
    uint32_t begin = calls * i / pair->count, count = calls * (i + 1) / pair->count - begin;
    if (count > MOST) count = MOST;
    memcpy(values[0], weft + begin, count * sizeof *weft);
    memcpy(values[1], peer + begin, count * sizeof *peer);
    pair->weft[i] = bench_median(values[0], count);
    pair->peer[i] = bench_median(values[1], count);
  }
}

/* ---- rows ----------------------------------------------------------------------------------------------------------
 */

typedef struct spread {
  double least, median, most;
} spread;

static spread spread_of(double *values, uint32_t count) {
  double median = bench_median(values, count);
  return (spread){values[0], median, values[count - 1]};
}

static spread shown(const bench_row *row, const double *seconds, uint32_t count) {
  double values[BENCH_MOST_SAMPLES];
  for (uint32_t i = 0; i < count; i++)
    values[i] = row->amount > 0 ? row->amount / fmax(seconds[i], 1e-12) : seconds[i] * row->scale;
  return spread_of(values, count);
}

static void print_spread(spread s) {
  char text[64];
  snprintf(text, sizeof text, "%.4g (%.3g, %.3g)", s.median, s.least, s.most);
  printf(" %26s", text);
}

/* No name holds a comma or a quote, so readers need no rules. */
static void csv_name(FILE *file, const char *name) {
  for (const char *at = name ? name : ""; *at; at++) fputc(*at == ',' || *at == '"' ? ';' : *at, file);
}

static void csv_row(const bench *b, const bench_row *row, spread weft, spread peer, spread speed) {
  fprintf(b->csv, "%s,", b->group);
  csv_name(b->csv, row->what);
  fprintf(b->csv, ",%s,%s,%.9g,%.9g,%.9g,", row->figure && !b->quick ? row->figure : "", row->unit, weft.least,
          weft.median, weft.most);
  csv_name(b->csv, row->peer);
  if (row->peer)
    fprintf(b->csv, ",%.9g,%.9g,%.9g,%.9g,%.9g,%.9g\n", peer.least, peer.median, peer.most, speed.least, speed.median,
            speed.most);
  else
    fputs(",,,,,,\n", b->csv);
  fflush(b->csv);
}

static void print_row(const bench_row *row, spread weft, spread peer, spread speed) {
  printf("  %-38s %-8s", row->what, row->unit);
  print_spread(weft);
  if (row->peer) {
    printf("  %-24s", row->peer);
    print_spread(peer);
    printf("  %.3f (%.2f, %.2f)", speed.median, speed.least, speed.most);
  }
  putchar('\n');
  fflush(stdout);
}

void bench_report(bench *b, const bench_row *row, const bench_pair *pair) {
  if (!b->speaks || pair->count == 0) return;
  b->row_count++;
  spread weft = shown(row, pair->weft, pair->count), peer = {0}, speed = {0};
  if (row->peer) {
    double quotients[BENCH_MOST_SAMPLES];
    for (uint32_t i = 0; i < pair->count; i++) quotients[i] = pair->peer[i] / fmax(pair->weft[i], 1e-12);
    peer = shown(row, pair->peer, pair->count);
    speed = spread_of(quotients, pair->count);
  }
  if (!row->silent) print_row(row, weft, peer, speed);
  if (b->csv) csv_row(b, row, weft, peer, speed);
}

/* ---- memory --------------------------------------------------------------------------------------------------------
 */

enum { HUGE_PAGE = 2 << 20 };

void *bench_memory(size_t bytes) {
  size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : 64;
  size_t size = (bytes + alignment) / alignment * alignment;
  void *data = aligned_alloc(alignment, size);
  if (!data) {
    fprintf(stderr, "out of memory for %zu bytes\n", bytes);
    exit(3);
  }
  if (bytes >= HUGE_PAGE) madvise(data, size, MADV_HUGEPAGE);
  memset(data, 0, size);
  return data;
}

void bench_fill(float *values, uint64_t count, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++)
    values[i] = (float)((int64_t)(weft_random_next(&seed) >> 40) - (INT64_C(1) << 23)) * 0x1p-23f;
}

/* ---- standard error ------------------------------------------------------------------------------------------------
 */

static FILE *kept;
static int spoken = -1;

void bench_hush(void) {
  kept = tmpfile();
  if (!kept) return;
  fflush(stderr);
  spoken = dup(STDERR_FILENO);
  if (spoken >= 0) dup2(fileno(kept), STDERR_FILENO);
}

void bench_hear(bool show) {
  if (!kept) return;
  fflush(stderr);
  if (spoken >= 0) dup2(spoken, STDERR_FILENO);
  if (spoken >= 0) close(spoken);
  char line[512];
  rewind(kept);
  while (show && fgets(line, sizeof line, kept)) fputs(line, stderr);
  fclose(kept);
  kept = NULL;
  spoken = -1;
}

/* ---- files ---------------------------------------------------------------------------------------------------------
 */

static char folder[512];

const char *bench_folder(void) {
  if (folder[0]) return folder;
  const char *root = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/weft-bench-XXXXXX", root && *root ? root : "/tmp");
  if (mkdtemp(folder)) return folder;
  fprintf(stderr, "%s: %s\n", folder, strerror(errno));
  folder[0] = 0;
  return NULL;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
  (void)info, (void)kind, (void)place;
  return remove(path);
}

bool bench_command(const char *format, ...) {
  weft_text command = {0};
  va_list arguments;
  va_start(arguments, format);
  weft_text_puts(&command, "( ");
  weft_text_vprintf(&command, format, arguments);
  va_end(arguments);
  weft_text_printf(&command, " ) > %s/command.txt 2>&1", bench_folder());
  int status = command.failed ? -1 : system(command.data);
  if (status != 0) {
    fprintf(stderr, "failed: %s\n", command.data ? command.data : "");
    char line[600];
    snprintf(line, sizeof line, "%s/command.txt", folder);
    FILE *file = fopen(line, "r");
    while (file && fgets(line, sizeof line, file)) fputs(line, stderr);
    if (file) fclose(file);
  }
  weft_text_free(&command);
  return status == 0;
}

int bench_end(bench *b) {
  if (folder[0]) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  if (!b->speaks) return 0;
  putchar('\n');
  bool bad = fflush(stdout) != 0;
  if (b->csv && fclose(b->csv) != 0) bad = true;
  return bad || b->row_count == 0 ? 3 : 0;
}
