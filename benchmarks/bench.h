/* bench.h: what the benchmark programs share: alternating measurement, one table and its CSV a program.
 *
 * A program measures rows. Each row is a pair: weft and a peer, run in turn (ABAB) in one process or one mpirun, so
 * that both meet the same machine. A sample is the median of some calls; a row shows the median of its samples with
 * least and greatest, and the same of the sample-by-sample quotient. Usage of every program: NAME [--quick] [--csv
 * FILE]
 * [--weft COMMAND]. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#include "weft/base.h"

#include <stdio.h>

enum { BENCH_MOST_SAMPLES = 63 };

typedef struct bench {
  const char *group;
  bool quick;
  bool speaks; /**< false on ranks other than 0 */
  FILE *csv;
  const char *weft; /**< the command: for programs that run it */
  uint32_t samples; /**< of each side */
  double least;     /**< seconds a sample lasts */
  double rest;      /**< seconds before a sample of several threads: those of the other side spin for a while */
  uint64_t row_count;
  char weft_path[4096];
} bench;

/** Peers choose their kernels by themselves: what would steer them is taken from the environment, and the program
 * started anew if something was. First in main, before MPI. */
void bench_environment(char **argv);
/** Reads the command line. `rank` 0 speaks. False after a message. */
bool bench_begin(bench *b, const char *group, uint32_t rank, int argc, char **argv);
/** Prints what is compared on which machine, e.g. peers "OpenBLAS 0.3.21 (Zen)", kernels NULL when none are used. */
void bench_heading(bench *b, const char *about, const char *peers, const char *kernels);
/** The exit status. */
int bench_end(bench *b);

double bench_seconds(void);

/** Something to time. */
typedef struct bench_work {
  void (*run)(void *context);
  void *context;
  int threads;
} bench_work;

/** Seconds a call, sample by sample. `peer` is unused in rows without one. */
typedef struct bench_pair {
  uint32_t count;
  double weft[BENCH_MOST_SAMPLES], peer[BENCH_MOST_SAMPLES];
} bench_pair;

/** Times both in turn. A NULL peer: only weft. */
void bench_measure(const bench *b, const bench_work *weft, const bench_work *peer, bench_pair *pair);
/** Samples from single calls that were timed in turn elsewhere. */
void bench_gather(const bench *b, const double *weft, const double *peer, uint32_t calls, bench_pair *pair);
/** The median of `count` numbers, which are put in order. */
double bench_median(double *values, uint32_t count);

typedef struct bench_row {
  const char *figure; /**< of figures.def, not judged with --quick; NULL: for information */
  const char *what;
  const char *peer; /**< NULL: a row without one */
  const char *unit; /**< "GFLOP/s", "us" */
  double amount;    /**< above 0: work of one call, shown as amount / seconds; 0: shown as seconds * scale */
  double scale;
  bool silent; /**< only for the CSV: the program prints a table of its own */
} bench_row;
/** Prints a row and writes it to the CSV. */
void bench_report(bench *b, const bench_row *row, const bench_pair *pair);

/** What is measured as it grows: seconds of a work, or bytes. */
typedef struct bench_quantity {
  const char *name;
  const char *figure; /**< of figures.def: the doubling that grows most has it; NULL: for information */
  const char *unit;   /**< shown as value * scale */
  double scale;
} bench_quantity;

enum { BENCH_MOST_QUANTITIES = 6, BENCH_MOST_SIZES = 8 };

/** Does everything once at a size: the quantities' values, and the size as it is shown. */
typedef bool bench_grow(uint64_t size, double *values, uint64_t *shown);

typedef struct bench_growth {
  const bench_quantity *quantities;
  uint32_t quantity_count;
  uint64_t least; /**< the first size; each further one is twice the one before */
  uint32_t sizes;
  uint32_t rounds; /**< samples of each size */
} bench_growth;

/** Measures every size beside half of it, a row a quantity and doubling. Each sample is this program started anew: its
 * main hands such a command line (`bench_is_sample`) to bench_sample with what is to be done. */
bool bench_measure_growth(bench *b, const bench_growth *growth);
bool bench_is_sample(int argc, char **argv);
/** The exit status. */
int bench_sample(const char *size, bench_grow *run);

/** Memory as the runtime has it: aligned, huge pages where they are worth it, touched. Ends the program without it. */
void *bench_memory(size_t bytes);
/** Values in [-1, 1) that are the same in every run. */
void bench_fill(float *values, uint64_t count, uint64_t seed);

/** Keeps what is written to standard error until the second call, which shows it or forgets it: warnings of every run
 * are no part of a table. */
void bench_hush(void);
void bench_hear(bool show);

/** A new folder for files; removed with everything in it by bench_end. NULL after a message. */
const char *bench_folder(void);
/** Runs a shell command, its output in FOLDER/command.txt; shows that and returns false when it fails. */
bool bench_command(const char *format, ...) WEFT_PRINTF(1, 2);

#endif
