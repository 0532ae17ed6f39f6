/* weft sample: programs from a grammar. */
#include "options.h"
#include "weft/grammar.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct sample_options {
  weft_grammar_options sampling;
  uint64_t count;
  const char *output;
  bool coverage;
} sample_options;

/* NAME=NUMBER in place: the `=` becomes the end of the name. */
static bool read_pin(char *text, weft_grammar_pin *pin) {
  char *equals = strchr(text, '=');
  if (!equals || equals == text || !equals[1]) return false;
  char *end;
  errno = 0;
  pin->value = strtoll(equals + 1, &end, 10);
  if (*end || errno) return false;
  *equals = '\0';
  pin->name = text;
  return true;
}

static bool read_pins(const weft_option_list *list, weft_grammar_pin **pins, weft_arena *arena) {
  *pins = WEFT_NEW_ARRAY(arena, weft_grammar_pin, list->count);
  for (uint64_t i = 0; i < list->count; i++) {
    char *copy = weft_arena_printf(arena, "%s", list->items[i]);
    if (!*pins || !copy || !read_pin(copy, &(*pins)[i])) return false;
  }
  return true;
}

/* How often each alternative was taken. */
static void print_coverage(const weft_grammar *grammar, const uint64_t *hits, weft_text *text) {
  for (uint64_t i = 0; i < weft_grammar_alternatives(grammar); i++) {
    weft_grammar_alternative a = weft_grammar_alternative_at(grammar, i);
    weft_text_printf(text, "%10" PRIu64 "  %s:%" PRIu64 ":%" PRIu64 "  %s, alternative %u%s\n", hits[i], a.place.file,
                     a.place.line, a.place.column, a.rule, a.index + 1, a.reachable ? "" : " (never reached)");
  }
}

static weft_status sample_all(const weft_grammar *grammar, const sample_options *options, weft_diag *diag) {
  weft_grammar_options one = options->sampling;
  weft_text text = {0};
  weft_status status = WEFT_OK;
  one.hits = calloc(weft_grammar_alternatives(grammar) + 1, sizeof *one.hits);
  if (!one.hits) return weft_error_memory(diag);
  for (uint64_t i = 0; i < options->count && !status; i++, one.seed++) {
    if (options->coverage) text.length = 0;
    if (text.length) weft_text_puts(&text, "// -----\n");
    status = weft_grammar_sample(grammar, &one, &text, diag);
  }
  if (options->coverage) text.length = 0;
  if (!status && options->coverage) print_coverage(grammar, one.hits, &text);
  if (!status && text.failed) status = weft_error_memory(diag);
  if (!status) status = weft_write_file(options->output, text.data ? text.data : "", text.length, false, diag);
  weft_text_free(&text);
  free(one.hits);
  return status;
}

static weft_status run(const char *path, const sample_options *options, weft_diag *diag) {
  weft_grammar *grammar;
  weft_status status = weft_grammar_read(path, &grammar, diag);
  if (!status) status = sample_all(grammar, options, diag);
  weft_grammar_free(grammar);
  return status;
}

int weft_cmd_sample(int argc, char **argv) {
  sample_options o = {.count = 1, .output = "-"};
  weft_option_list set = {0};
  const weft_option options[] = {{.name = "seed",
                                  .letter = 's',
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &o.sampling.seed,
                                  .help = "which program (0)"},
                                 {.name = "count",
                                  .letter = 'n',
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &o.count,
                                  .help = "programs of N seeds in a row, split by // ----- (1)"},
                                 {.name = "set",
                                  .kind = WEFT_OPTION_LIST,
                                  .target = &set,
                                  .argument = "NAME=N",
                                  .help = "every `new NAME` binds N; other decisions stay"},
                                 {.name = "start",
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &o.sampling.start,
                                  .argument = "RULE",
                                  .help = "the root (start)"},
                                 {.name = "depth",
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &o.sampling.soft_depth,
                                  .help = "from this depth of rules on, end soon (100)"},
                                 {.name = "size",
                                  .kind = WEFT_OPTION_COUNT,
                                  .target = &o.sampling.soft_size,
                                  .help = "after this many rules, end soon (10000)"},
                                 {.name = "coverage",
                                  .kind = WEFT_OPTION_FLAG,
                                  .target = &o.coverage,
                                  .help = "print how often each alternative was taken, no programs"},
                                 {.name = "output",
                                  .letter = 'o',
                                  .kind = WEFT_OPTION_TEXT,
                                  .target = &o.output,
                                  .argument = "FILE",
                                  .help = "where to (-)"},
                                 {0}};
  const weft_usage usage = {
      .synopsis = "sample GRAMMAR [options]",
      .about = "Writes random programs of a grammar (.pg). The same seed gives the same program on every machine.",
      .example = "echo \"start: {new N = random.randint(1, 9)} 'x = ' [N] ';';\" > x.pg\n"
                 "weft sample x.pg --seed 7\n"
                 "weft sample x.pg --count 100 --set N=2 -o twos.txt",
      .options = options,
      .least = 1,
      .most = 1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  weft_arena *arena = weft_arena_new();
  weft_grammar_pin *pins = NULL;
  weft_diag *diag = weft_diag_new();
  if (arena && !read_pins(&set, &pins, arena)) {
    exit_code = weft_tool_misuse(&usage, "--set needs NAME=NUMBER");
    weft_diag_free(diag);
  } else {
    o.sampling.pins = pins;
    o.sampling.pin_count = set.count;
    exit_code = weft_tool_finish(arena ? run(arguments.items[0], &o, diag) : WEFT_UNAVAILABLE, diag, &arguments);
  }
  weft_option_list_free(&set);
  weft_arena_free(arena);
  return exit_code;
}
