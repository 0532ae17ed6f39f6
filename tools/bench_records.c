#include "bench_records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading -------------------------------------------------------------------------------------------------------
 */

enum { FIELDS = 14 };

/* Cuts a line at its commas. */
static bool split(char *line, char *fields[FIELDS]) {
  int count = 0;
  fields[count++] = line;
  for (char *at = line; *at; at++) {
    if (*at != ',') continue;
    if (count == FIELDS) return false;
    *at = 0;
    fields[count++] = at + 1;
  }
  return count == FIELDS;
}

static bool number(const char *text, double *value) {
  char *end;
  *value = strtod(text, &end);
  return end != text && !*end;
}

static bool spread(char *const fields[], weft_bench_spread *to) {
  return number(fields[0], &to->least) && number(fields[1], &to->median) && number(fields[2], &to->most);
}

static bool record_of(char *const fields[FIELDS], weft_bench_record *record) {
  *record = (weft_bench_record){
      .group = fields[0], .what = fields[1], .figure = fields[2], .unit = fields[3], .peer = fields[7]};
  if (!*record->group || !*record->what || !*record->unit || !spread(fields + 4, &record->weft)) return false;
  return !*record->peer || (spread(fields + 8, &record->with_peer) && spread(fields + 11, &record->speed));
}

static weft_status read_line(weft_bench_records *records, const char *line, size_t length, uint64_t run, bool *headed,
                             weft_diag *diag, weft_place place) {
  if (length == 0) return WEFT_OK;
  if (*line == '#' || !*headed) {
    bool head = *line != '#';
    if (!head || !records->count) weft_text_printf(&records->csv, "%.*s\n", (int)length, line);
    *headed = *headed || head;
    return WEFT_OK;
  }
  weft_text_printf(&records->csv, "%.*s\n", (int)length, line);
  char *copy = weft_arena_string(records->arena, line, length), *fields[FIELDS];
  if (!copy ||
      !weft_arena_grow(records->arena, &records->items, records->count, &records->capacity, sizeof *records->items))
    return weft_error_memory(diag);
  weft_bench_record *record = &records->items[records->count];
  if (!split(copy, fields) || !record_of(fields, record))
    return weft_error_at(diag, WEFT_INVALID, place, NULL, "this is no row of a benchmark");
  record->run = run;
  records->count++;
  return WEFT_OK;
}

weft_status weft_bench_records_read(weft_bench_records *records, const char *path, uint64_t run, weft_diag *diag) {
  char *text;
  size_t length;
  weft_status status = weft_read_file(path, &text, &length, diag);
  if (status != WEFT_OK) return status;
  bool headed = false;
  weft_place place = {.file = path};
  for (const char *at = text; status == WEFT_OK && *at;) {
    size_t line = strcspn(at, "\n");
    place.line++;
    status = read_line(records, at, line, run, &headed, diag, place);
    at += line + (at[line] == '\n');
  }
  free(text);
  return status;
}

/* ---- figures -------------------------------------------------------------------------------------------------------
 */

typedef enum figure_kind { FIGURE_SPEED, FIGURE_TIME, FIGURE_VALUE } figure_kind;

typedef struct figure {
  const char *name, *group, *work;
  figure_kind kind;
  double bound;
} figure;

static const figure figures[] = {
#define FIGURE(name, group, work, kind, bound) {#name, group, work, FIGURE_##kind, bound},
#include "figures.def"
#undef FIGURE
};
enum { FIGURE_COUNT = sizeof figures / sizeof *figures };

static const weft_bench_record *find(const weft_bench_records *records, const char *name, uint64_t run) {
  for (uint64_t i = 0; i < records->count; i++)
    if (records->items[i].run == run && strcmp(records->items[i].figure, name) == 0) return &records->items[i];
  return NULL;
}

static double measured(const figure *f, const weft_bench_record *record) {
  if (f->kind == FIGURE_VALUE) return record->weft.median;
  return f->kind == FIGURE_TIME ? 1 / record->speed.median : record->speed.median;
}

static bool reached(const figure *f, double value) {
  return f->kind == FIGURE_SPEED ? value >= f->bound : value <= f->bound;
}

static bool has_rows(const weft_bench_records *records, const char *group) {
  for (uint64_t i = 0; i < records->count; i++)
    if (strcmp(records->items[i].group, group) == 0) return true;
  return false;
}

static void figure_row(const figure *f, const weft_bench_records *records, uint64_t runs, const char *why,
                       weft_text *text) {
  static const char *const words[] = {"speed >=", "time  <=", "value <="};
  weft_text values = {0};
  uint64_t yes = 0, all = 0;
  for (uint64_t run = 0; run < runs; run++) {
    const weft_bench_record *record = find(records, f->name, run);
    if (!record) continue;
    double value = measured(f, record);
    all++;
    yes += reached(f, value);
    weft_text_printf(&values, "%s%.3g", all > 1 ? " " : "", value);
  }
  weft_text_printf(text, "  %-60s %s %-6.4g", f->work, words[f->kind], f->bound);
  if (all == 0)
    weft_text_printf(text, "  not measured: %s\n", why);
  else if (runs == 1)
    weft_text_printf(text, "  %-3s  %s\n", yes ? "yes" : "no", values.data);
  else
    weft_text_printf(text, "  %s (%d of %d)  %s\n", yes == runs ? "yes" : "no", (int)yes, (int)runs, values.data);
  weft_text_free(&values);
}

void weft_bench_figures(const weft_bench_records *records, uint64_t runs, weft_bench_reason *reason, void *context,
                        weft_text *text) {
  weft_text_printf(text, "%-62s %-16s  %s\n", "figures to reach, as quotients to the peer of the same run", "target",
                   runs > 1 ? "reached, and what was measured in each run" : "reached, and what was measured");
  for (int i = 0; i < FIGURE_COUNT; i++) {
    const char *why = reason(context, figures[i].group);
    if (!why && !has_rows(records, figures[i].group)) continue;
    figure_row(&figures[i], records, runs, why ? why : "not in this run", text);
  }
}

/* ---- pictures ------------------------------------------------------------------------------------------------------
 */

/* Marks of gnuplot's enhanced text stand for themselves. */
static void label(weft_text *text, const weft_bench_record *record) {
  weft_text_printf(text, "\"%s: %s%s%s\"", record->group, record->what, *record->peer ? " / " : ", ",
                   *record->peer ? record->peer : record->unit);
}

static uint64_t data_block(const weft_bench_records *records, bool with_peer, weft_text *text) {
  uint64_t count = 0;
  weft_text_printf(text, "$%s << END\n", with_peer ? "speeds" : "values");
  for (uint64_t i = 0; i < records->count; i++) {
    const weft_bench_record *record = &records->items[i];
    weft_bench_spread s = with_peer ? record->speed : record->weft;
    if ((*record->peer != 0) != with_peer || !(s.median > 0)) continue;
    weft_text_printf(text, "%d %.6g %.6g %.6g ", (int)count++, s.median, s.least, s.most);
    label(text, record);
    weft_text_puts(text, "\n");
  }
  weft_text_puts(text, "END\n");
  return count;
}

static void panel(weft_text *text, bool speeds, double top, double bottom, uint64_t count) {
  weft_text_printf(text,
                   "set tmargin at screen %.4f\nset bmargin at screen %.4f\nset title \"%s\"\n"
                   "set yrange [%d.5:-0.5]\n",
                   top, bottom,
                   speeds ? "times as fast as the peer: median, least, greatest"
                          : "weft alone: median, least, greatest",
                   (int)count - 1);
  weft_text_puts(text,
                 speeds ? "set arrow 1 from 1, graph 0 to 1, graph 1 nohead lc rgb 'gray40'\n" : "unset arrow 1\n");
  weft_text_printf(text, "plot $%s using 2:1:3:4:ytic(5) with xerrorbars pt 7 ps 0.6 lc rgb '%s' notitle\n",
                   speeds ? "speeds" : "values", speeds ? "#1f5fa8" : "#2f7d4f");
}

static void script(const weft_bench_records *records, const char *path, const char *terminal, weft_text *text) {
  weft_text body = {0};
  uint64_t speeds = data_block(records, true, &body), values = data_block(records, false, &body);
  double rows = (double)(speeds + values) + (speeds > 0 ? 5 : 0) + (values > 0 ? 5 : 0);
  weft_text_printf(text, "set terminal %s size 1200,%d noenhanced\nset output ", terminal, (int)(rows * 20));
  weft_text_json_string(text, path);
  weft_text_puts(text, "\nset logscale x\nset grid x\nset lmargin 62\nset rmargin 4\nset multiplot\n");
  weft_text_append(text, body.data ? body.data : "", body.length);
  weft_text_free(&body);
  double cut = values ? 1 - ((double)speeds + 5) / rows : 0;
  if (speeds) panel(text, true, 1 - 2 / rows, cut + 2 / rows, speeds);
  if (values) panel(text, false, speeds ? cut - 2 / rows : 1 - 2 / rows, 2 / rows, values);
  weft_text_puts(text, "unset multiplot\n");
}

const char *weft_bench_picture(const char *path) {
  const char *ending = strrchr(path, '.');
  if (ending && strcmp(ending, ".svg") == 0) return "svg";
  return ending && strcmp(ending, ".png") == 0 ? "pngcairo" : NULL;
}

weft_status weft_bench_plot(const weft_bench_records *records, const char *path, weft_diag *diag) {
  const char *terminal = weft_bench_picture(path);
  if (!terminal)
    return weft_error(diag, WEFT_USAGE, "name it .svg or .png", "'%s': no picture of this kind is drawn", path);
  if (records->count == 0) return weft_error(diag, WEFT_INVALID, NULL, "there are no rows to draw");
  weft_text text = {0};
  script(records, path, terminal, &text);
  FILE *gnuplot = text.failed ? NULL : popen("gnuplot", "w");
  bool written = gnuplot && fwrite(text.data, 1, text.length, gnuplot) == text.length;
  bool ok = gnuplot && pclose(gnuplot) == 0 && written;
  weft_text_free(&text);
  if (!ok)
    return weft_error(diag, WEFT_UNAVAILABLE, "install gnuplot: apt-get install gnuplot-nox",
                      "gnuplot did not draw '%s'", path);
  return WEFT_OK;
}
