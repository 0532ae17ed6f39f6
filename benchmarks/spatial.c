/* The text of a program as large as one layer of a 27B model, read, validated and written, beside yajl's parse of the
 * same bytes; and how the times grow with the program. */
#include "bench.h"
#include "gemm_chain.h"

#include "weft/partition.h"
#include "weft/plan.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_parse.h>

enum { SECTIONS = 925, QUICK_SECTIONS = 20, BLOCKS = 5 };

typedef struct large {
  const char *text;
  size_t length;
  weft_program *program;
  weft_diag *diag;
  bool failed;
} large;

static void parse(void *context) {
  large *l = context;
  weft_program *program = NULL;
  if (weft_program_read("large.json", l->text, l->length, &program, l->diag) != WEFT_OK) l->failed = true;
  weft_program_free(program);
}

static void parse_yajl(void *context) {
  large *l = context;
  yajl_handle handle = yajl_alloc(NULL, NULL, NULL);
  if (yajl_parse(handle, (const unsigned char *)l->text, l->length) != yajl_status_ok ||
      yajl_complete_parse(handle) != yajl_status_ok)
    l->failed = true;
  yajl_free(handle);
}

static void dump(void *context) {
  large *l = context;
  weft_text text = {0};
  weft_program_write(l->program, &text);
  if (text.failed || text.length != l->length) l->failed = true;
  weft_text_free(&text);
}

static void validate(void *context) {
  large *l = context;
  if (weft_program_validate(l->program, 1, NULL, l->diag) != WEFT_OK) l->failed = true;
}

static void certify(void *context) {
  large *l = context;
  if (weft_certify(l->program, &(weft_certificate){0}, l->diag) != WEFT_OK) l->failed = true;
}

static void compare(bench *b, const char *figure, const char *what, double amount, void (*weft)(void *),
                    const char *name, void (*peer)(void *), large *l) {
  bench_pair pair;
  bench_measure(b, &(bench_work){weft, l, 1}, &(bench_work){peer, l, 1}, &pair);
  bench_report(b, &(bench_row){.figure = figure, .what = what, .peer = name, .unit = "MB/s", .amount = amount}, &pair);
}

/* ---- memory --------------------------------------------------------------------------------------------------------
 */

/* Reads, validates and writes in a process of its own, or reads and certifies; prints its peak in kB. What a program
 * started by fork and exec has used by the count of its parent includes the parent's own memory. */
static int in_child(const char *path, bool certify) {
  weft_diag *diag = weft_diag_new();
  weft_program *program = NULL;
  weft_text text = {0};
  weft_status status = weft_program_read_file(path, &program, diag);
  if (status == WEFT_OK && certify) status = weft_certify(program, &(weft_certificate){0}, diag);
  if (status == WEFT_OK && !certify) status = weft_program_validate(program, 1, NULL, diag);
  if (status == WEFT_OK && !certify) weft_program_write(program, &text);
  FILE *own = fopen("/proc/self/status", "r");
  char line[256];
  while (own && fgets(line, sizeof line, own))
    if (strncmp(line, "VmHWM:", 6) == 0) fputs(line + 6, stdout);
  return own && status == WEFT_OK && !text.failed ? 0 : 1;
}

static bool measure_memory(bench *b, const char *path, size_t length, bool certify) {
  bench_pair pair = {.count = 1};
  char own[1024] = "", command[2000];
  if (readlink("/proc/self/exe", own, sizeof own - 1) < 0) return false;
  snprintf(command, sizeof command, "'%s' %s %s", own, certify ? "--certify" : "--memory", path);
  FILE *output = popen(command, "r");
  double kilobytes = 0;
  bool found = output && fscanf(output, "%lf", &kilobytes) == 1;
  if (!output || pclose(output) != 0 || !found) return false;
  pair.weft[0] = kilobytes * 1024;
  char what[64];
  snprintf(what, sizeof what, "peak of parse, %s (%d MB)", certify ? "certify" : "validate, dump",
           (int)(length / 1000000));
  bench_row row = {.figure = certify ? "certify_memory" : "spatial_memory", .what = what, .unit = "MB", .scale = 1e-6};
  bench_report(b, &row, &pair);
  return true;
}

/* ---- growth --------------------------------------------------------------------------------------------------------
 */

typedef struct growth {
  double parse, validate, certify, dump;
} growth;

static bool grow(uint64_t sections, growth *g) {
  weft_program *program = gemm_chain("growth", sections, BLOCKS), *copy = NULL;
  weft_text text = {0};
  double times[5];
  times[0] = bench_seconds();
  weft_program_write(program, &text);
  times[1] = bench_seconds();
  bool ok = weft_program_read("growth.json", text.data, text.length, &copy, NULL) == WEFT_OK;
  times[2] = bench_seconds();
  ok = ok && weft_program_validate(copy, 1, NULL, NULL) == WEFT_OK;
  times[3] = bench_seconds();
  weft_certificate certificate;
  ok = ok && weft_certify(copy, &certificate, NULL) == WEFT_OK;
  times[4] = bench_seconds();
  *g = (growth){.dump = times[1] - times[0],
                .parse = times[2] - times[1],
                .validate = times[3] - times[2],
                .certify = times[4] - times[3]};
  weft_text_free(&text);
  weft_program_free(copy);
  weft_program_free(program);
  return ok;
}

/* Memory that was touched once stays: on a virtual machine the first touch of a page costs more than what is written
 * there, and more still the more there is. */
static void keep_memory(void) {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 1 << 26);
}

/* Each size beside half of it, in turn, after a run of both that is not counted: twice the stages should take twice the
 * time. */
static bool measure_growth(bench *b, uint64_t sections, bool last) {
  static bench_pair pairs[4];
  static const char *const names[] = {"parse", "validate", "certify", "dump"};
  static const char *const figures[] = {"parse_linear", "validate_linear", "certify_linear", "dump_linear"};
  uint32_t count = b->quick ? 1 : 3;
  growth once, twice;
  if (!b->quick && !grow(2 * sections, &twice)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!grow(sections, &once) || !grow(2 * sections, &twice)) return false;
    const double sides[4][2] = {{once.parse, twice.parse},
                                {once.validate, twice.validate},
                                {once.certify, twice.certify},
                                {once.dump, twice.dump}};
    for (int p = 0; p < 4; p++) {
      pairs[p].weft[i] = sides[p][1];
      pairs[p].peer[i] = sides[p][0];
      pairs[p].count = i + 1;
    }
  }
  for (int p = 0; p < 4; p++) {
    char what[64], peer[40];
    snprintf(what, sizeof what, "%s, %d stages", names[p], (int)(32 * sections));
    snprintf(peer, sizeof peer, "%d stages", (int)(16 * sections));
    const char *figure = last ? figures[p] : NULL;
    bench_report(b, &(bench_row){.figure = figure, .what = what, .peer = peer, .unit = "ms", .scale = 1e3}, &pairs[p]);
  }
  return true;
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--memory") == 0) return in_child(argv[2], false);
  if (argc == 3 && strcmp(argv[1], "--certify") == 0) return in_child(argv[2], true);
  bench_environment(argv);
  keep_memory();
  bench b;
  if (!bench_begin(&b, "spatial", 0, argc, argv)) return 2;
  const char *folder = bench_folder();
  if (!folder) return 3;
  weft_text text = {0};
  large l = {.diag = weft_diag_new()};
  l.program = gemm_chain("large-gemm-chain", b.quick ? QUICK_SECTIONS : SECTIONS, BLOCKS);
  weft_program_write(l.program, &text);
  l.text = text.data;
  l.length = text.length;
  char path[600];
  snprintf(path, sizeof path, "%s/large.json", folder);
  if (text.failed || weft_write_file(path, text.data, text.length, false, NULL) != WEFT_OK) return 3;
  char about[100];
  snprintf(about, sizeof about, "a program of %d stages, %.1f MB of text", (int)l.program->stage_count,
           1e-6 * (double)l.length);
  bench_heading(&b, about, "yajl's parse without callbacks", NULL);
  double megabytes = 1e-6 * (double)l.length;
  compare(&b, "parse_yajl", "parse", megabytes, parse, "yajl", parse_yajl, &l);
  compare(&b, "dump_parse", "dump", megabytes, dump, "weft's parse", parse, &l);
  compare(&b, "validate_parse", "validate", megabytes, validate, "weft's parse", parse, &l);
  bench_pair pair;
  bench_measure(&b, &(bench_work){certify, &l, 1}, NULL, &pair);
  bench_report(&b, &(bench_row){.figure = "certify_large", .what = "certify", .unit = "s", .scale = 1}, &pair);
  bool ok = !l.failed;
  weft_program_free(l.program);
  weft_text_free(&text);
  ok = measure_memory(&b, path, l.length, false) && measure_memory(&b, path, l.length, true) && ok;
  for (uint64_t sections = b.quick ? QUICK_SECTIONS : SECTIONS;
       ok && sections <= (b.quick ? QUICK_SECTIONS : 8 * SECTIONS); sections *= 2)
    ok = measure_growth(&b, sections, sections == 8 * SECTIONS);
  weft_diag_free(l.diag);
  if (!ok) fputs("spatial: the program could not be read, validated or proved\n", stderr);
  int status = bench_end(&b);
  return ok ? status : 3;
}
