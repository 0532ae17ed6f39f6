/* What `weft bench` knows: the rows that benchmark programs measured, the figures to reach, tables and pictures of
 * both. */
#ifndef WEFT_TOOLS_BENCH_RECORDS_H
#define WEFT_TOOLS_BENCH_RECORDS_H

#include "weft/base.h"

typedef struct weft_bench_spread {
  double least, median, most;
} weft_bench_spread;

/** One row of a program's CSV. */
typedef struct weft_bench_record {
  const char *group, *what, *figure, *unit, *peer; /**< figure and peer "" when there is none */
  weft_bench_spread weft, with_peer, speed;        /**< the last two only with a peer */
  uint64_t run;                                    /**< of --repeat */
} weft_bench_record;

typedef struct weft_bench_records {
  weft_arena *arena;
  weft_bench_record *items;
  uint64_t count, capacity;
  weft_text csv; /**< all rows as the programs wrote them, comments too, the head once */
} weft_bench_records;

/** Adds the rows of a program's CSV. WEFT_INVALID, with file and line, when it is none. */
weft_status weft_bench_records_read(weft_bench_records *records, const char *path, uint64_t run, weft_diag *diag);

/** Why a group has no rows, e.g. "libyajl-dev not installed"; NULL when it has. */
typedef const char *weft_bench_reason(void *context, const char *group);
/** Appends the table of figures: what was to be reached and what was, in each of `runs`. */
void weft_bench_figures(const weft_bench_records *records, uint64_t runs, weft_bench_reason *reason, void *context,
                        weft_text *text);

/** The terminal of gnuplot for a file's name; NULL: pictures of this kind are not drawn. */
const char *weft_bench_picture(const char *path);
/** Draws the rows with gnuplot; the ending of `path` says how: .svg or .png. */
weft_status weft_bench_plot(const weft_bench_records *records, const char *path, weft_diag *diag);

#endif
