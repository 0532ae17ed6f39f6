#include "options.h"
#include "progress.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- help ----------------------------------------------------------------------------------------------------------
 */

static const char *argument_name(const weft_option *option) {
  if (option->argument) return option->argument;
  switch (option->kind) {
  case WEFT_OPTION_FLAG: return NULL;
  case WEFT_OPTION_CHOICE: return option->choices;
  case WEFT_OPTION_COUNT:
  case WEFT_OPTION_INTEGER: return "N";
  case WEFT_OPTION_NUMBER: return "X";
  default: return "TEXT";
  }
}

static void print_row(char letter, const char *name, const char *argument, const char *help) {
  char left[64];
  int length =
      letter ? snprintf(left, sizeof left, "-%c, --%s", letter, name) : snprintf(left, sizeof left, "    --%s", name);
  if (argument && length < (int)sizeof left)
    length += snprintf(left + length, sizeof left - (size_t)length, " %s", argument);
  if (length > 28)
    printf("  %s\n  %-28s  %s\n", left, "", help);
  else
    printf("  %-28s  %s\n", left, help);
}

void weft_usage_print(const weft_usage *usage) {
  printf("usage: weft %s\n\n%s\n\noptions:\n", usage->synopsis, usage->about);
  for (const weft_option *option = usage->options; option && option->name; option++)
    print_row(option->letter, option->name, argument_name(option), option->help);
  print_row('v', "verbose", NULL, "say more on standard error");
  print_row('h', "help", NULL, "this text");
  if (!usage->example) return;
  printf("\nexample:\n");
  for (const char *line = usage->example; *line;) {
    int length = (int)strcspn(line, "\n");
    printf("  %.*s\n", length, line);
    line += length + (line[length] == '\n');
  }
}

/* ---- mistakes ------------------------------------------------------------------------------------------------------
 */

/* The command's name is its synopsis up to the first word that is not part of it: "tensor show" of "tensor show FILE",
 * "tensor make" of "tensor make --program FILE". */
static int command_name_length(const weft_usage *usage) {
  const char *at = usage->synopsis, *end = at;
  while (*at >= 'a' && *at <= 'z') {
    size_t word = strspn(at, "abcdefghijklmnopqrstuvwxyz-");
    if (at[word] && at[word] != ' ') break;
    end = at + word;
    at = end + (*end == ' ');
  }
  return (int)(end - usage->synopsis);
}

static int misuse(const weft_usage *usage, const char *hint, const char *format, va_list arguments) {
  weft_text text = {0}, help = {0};
  weft_text_vprintf(&text, format, arguments);
  if (!hint) weft_text_printf(&help, "weft %.*s --help shows how", command_name_length(usage), usage->synopsis);
  weft_tool_error(hint ? hint : help.data, "%s", text.data ? text.data : format);
  weft_text_free(&text);
  weft_text_free(&help);
  return weft_status_exit_code(WEFT_USAGE);
}

int weft_tool_misuse(const weft_usage *usage, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int exit_code = misuse(usage, NULL, format, arguments);
  va_end(arguments);
  return exit_code;
}

static WEFT_PRINTF(3, 4) int misuse_hint(const weft_usage *usage, const char *hint, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int exit_code = misuse(usage, hint, format, arguments);
  va_end(arguments);
  return exit_code;
}

static int unknown_option(const weft_usage *usage, const char *name) {
  const char *nearest = weft_names_alike(name, "help") ? "help" : weft_names_alike(name, "verbose") ? "verbose" : NULL;
  uint32_t distance = nearest ? weft_edit_distance(name, nearest) : UINT32_MAX;
  for (const weft_option *option = usage->options; option && option->name; option++) {
    uint32_t other = weft_edit_distance(name, option->name);
    if (other >= distance || !weft_names_alike(name, option->name)) continue;
    nearest = option->name;
    distance = other;
  }
  char hint[80];
  if (nearest) snprintf(hint, sizeof hint, "did you mean --%s?", nearest);
  return misuse_hint(usage, nearest ? hint : NULL, "there is no option --%s", name);
}

/* ---- values --------------------------------------------------------------------------------------------------------
 */

static bool append(weft_option_list *list, const char *value) {
  const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
  if (!items) return false;
  items[list->count++] = value;
  list->items = items;
  return true;
}

void weft_option_list_free(weft_option_list *list) {
  free(list->items);
  *list = (weft_option_list){0};
}

static bool is_choice(const char *choices, const char *value) {
  size_t length = strlen(value);
  for (const char *choice = choices; *choice;) {
    size_t this_length = strcspn(choice, "|");
    if (this_length == length && memcmp(choice, value, length) == 0) return true;
    choice += this_length + (choice[this_length] == '|');
  }
  return false;
}

static bool parse_count(const char *value, uint64_t *result) {
  char *end;
  errno = 0;
  *result = strtoull(value, &end, 10);
  return *value >= '0' && *value <= '9' && *end == 0 && errno == 0;
}

static bool parse_integer(const char *value, int64_t *result) {
  char *end;
  errno = 0;
  *result = strtoll(value, &end, 10);
  const char *digits = value + (*value == '-');
  return *digits >= '0' && *digits <= '9' && *end == 0 && errno == 0;
}

static bool parse_number(const char *value, double *result) {
  char *end;
  *result = strtod(value, &end);
  return end != value && *end == 0 && isfinite(*result) && *result >= 0;
}

static int wrong_value(const weft_usage *usage, const weft_option *option, const char *wanted, const char *value) {
  return weft_tool_misuse(usage, "--%s takes %s, not `%s`", option->name, wanted, value);
}

/* Stores `value`; 0 or the exit status. */
static int take_value(const weft_usage *usage, const weft_option *option, const char *value) {
  if (option->given) *option->given = true;
  /* No file, name or list is called nothing: such a word is a variable of the caller's that holds none. */
  if (!*value) return weft_tool_misuse(usage, "--%s needs %s, not an empty word", option->name, argument_name(option));
  switch (option->kind) {
  case WEFT_OPTION_FLAG: break;
  case WEFT_OPTION_TEXT: *(const char **)option->target = value; break;
  case WEFT_OPTION_LIST:
    if (append(option->target, value)) break;
    weft_tool_error("give the process more memory", "out of memory");
    return weft_status_exit_code(WEFT_UNAVAILABLE);
  case WEFT_OPTION_COUNT:
    if (!parse_count(value, option->target)) return wrong_value(usage, option, "a whole number", value);
    break;
  case WEFT_OPTION_INTEGER:
    if (!parse_integer(value, option->target)) return wrong_value(usage, option, "an integer", value);
    break;
  case WEFT_OPTION_NUMBER:
    if (!parse_number(value, option->target)) return wrong_value(usage, option, "a number from 0", value);
    break;
  case WEFT_OPTION_CHOICE:
    if (!is_choice(option->choices, value)) return wrong_value(usage, option, option->choices, value);
    *(const char **)option->target = value;
  }
  return 0;
}

/* ---- the command line ----------------------------------------------------------------------------------------------
 */

typedef struct scan {
  const weft_usage *usage;
  weft_arguments *arguments;
  int argc;
  char **argv;
  int next; /* index of the argument looked at next */
  bool help;
} scan;

static const weft_option *option_named(const weft_usage *usage, const char *name, size_t length) {
  for (const weft_option *option = usage->options; option && option->name; option++)
    if (strncmp(option->name, name, length) == 0 && option->name[length] == 0) return option;
  return NULL;
}

static const weft_option *option_lettered(const weft_usage *usage, char letter) {
  for (const weft_option *option = usage->options; option && option->name; option++)
    if (option->letter == letter) return option;
  return NULL;
}

/* An option whose value is `value`, or the next argument when that is NULL; 0 or the exit status. */
static int take_option(scan *s, const weft_option *option, const char *value) {
  if (option->kind == WEFT_OPTION_FLAG) {
    if (value) return weft_tool_misuse(s->usage, "--%s takes no value", option->name);
    *(bool *)option->target = true;
    if (option->given) *option->given = true;
    return 0;
  }
  if (!value && s->next < s->argc) value = s->argv[s->next++];
  if (!value) return weft_tool_misuse(s->usage, "--%s needs %s", option->name, argument_name(option));
  return take_value(s->usage, option, value);
}

static int take_long(scan *s, const char *word) {
  size_t length = strcspn(word, "=");
  const char *value = word[length] == '=' ? word + length + 1 : NULL;
  const weft_option *option = option_named(s->usage, word, length);
  if (option) return take_option(s, option, value);
  if (strcmp(word, "help") == 0) return s->help = true, 0;
  if (strcmp(word, "verbose") == 0) return s->arguments->verbose = true, 0;
  if (strncmp(word, "no-", 3) == 0 && !value) {
    option = option_named(s->usage, word + 3, length - 3);
    if (option && option->kind == WEFT_OPTION_FLAG) return *(bool *)option->target = false, 0;
  }
  char name[80];
  snprintf(name, sizeof name, "%.*s", (int)weft_min_u64(length, sizeof name - 1), word);
  return unknown_option(s->usage, name);
}

/* `letters` is what follows the dash: flags in a row, the last of which may take the rest as its value. */
static int take_letters(scan *s, const char *letters) {
  for (; *letters; letters++) {
    const weft_option *option = option_lettered(s->usage, *letters);
    if (option && option->kind != WEFT_OPTION_FLAG) return take_option(s, option, letters[1] ? letters + 1 : NULL);
    if (option)
      *(bool *)option->target = true;
    else if (*letters == 'v')
      s->arguments->verbose = true;
    else if (*letters == 'h')
      s->help = true;
    else
      return weft_tool_misuse(s->usage, "there is no option -%c", *letters);
    if (option && option->given) *option->given = true;
  }
  return 0;
}

static int take_words(scan *s) {
  bool options_ended = false;
  while (s->next < s->argc && !s->help) {
    char *word = s->argv[s->next++];
    int exit_code = 0;
    if (options_ended || word[0] != '-' || word[1] == 0)
      s->arguments->items[s->arguments->count++] = word;
    else if (strcmp(word, "--") == 0)
      options_ended = true;
    else if (word[1] == '-')
      exit_code = take_long(s, word + 2);
    else
      exit_code = take_letters(s, word + 1);
    if (exit_code) return exit_code;
  }
  return 0;
}

bool weft_options_parse(const weft_usage *usage, int argc, char **argv, weft_arguments *arguments, int *exit_code) {
  *arguments = (weft_arguments){.items = argv + 1};
  scan s = {.usage = usage, .arguments = arguments, .argc = argc, .argv = argv, .next = 1};
  *exit_code = take_words(&s);
  if (*exit_code) return false;
  if (s.help) {
    weft_usage_print(usage);
    return false;
  }
  if (arguments->count < usage->least)
    *exit_code = misuse_hint(usage, NULL, "an argument is missing: weft %s", usage->synopsis);
  else if (usage->most >= 0 && arguments->count > usage->most)
    *exit_code = weft_tool_misuse(usage, "`%s` is one argument too many", arguments->items[usage->most]);
  for (int i = 0; i < arguments->count && *exit_code == 0; i++)
    if (!*arguments->items[i]) *exit_code = weft_tool_misuse(usage, "an argument is an empty word");
  return *exit_code == 0;
}

/* ---- verbs ---------------------------------------------------------------------------------------------------------
 */

static int list_verbs(const char *command, const weft_verb *verbs) {
  printf("usage: weft %s VERB ...\n\nverbs (weft %s VERB --help says more):\n", command, command);
  for (const weft_verb *verb = verbs; verb->name; verb++) printf("  %-12s  %s\n", verb->name, verb->help);
  return 0;
}

static int unknown_verb(const char *command, const weft_verb *verbs, const char *name) {
  weft_text hint = {0};
  for (const weft_verb *verb = verbs; verb->name; verb++)
    weft_text_printf(&hint, "%s%s", hint.length ? ", " : "weft has: ", verb->name);
  if (name)
    weft_tool_error(hint.data, "weft %s has no verb `%s`", command, name);
  else
    weft_tool_error(hint.data, "weft %s needs a verb", command);
  weft_text_free(&hint);
  return weft_status_exit_code(WEFT_USAGE);
}

int weft_verbs_run(const char *command, const weft_verb *verbs, int argc, char **argv) {
  if (argc < 2) return unknown_verb(command, verbs, NULL);
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) return list_verbs(command, verbs);
  for (const weft_verb *verb = verbs; verb->name; verb++)
    if (strcmp(argv[1], verb->name) == 0) return verb->run(argc - 1, argv + 1);
  return unknown_verb(command, verbs, argv[1]);
}

/* ---- messages ------------------------------------------------------------------------------------------------------
 */

static void print_message(const weft_message *message) {
  weft_text text = {0};
  weft_message_put(message, &text);
  fputs(text.failed ? message->text : text.data, stderr);
  weft_text_free(&text);
}

void weft_tool_print(FILE *out, const weft_text *readable) {
  weft_text text = {0};
  if (readable->data) weft_text_safe(&text, readable->data);
  if (text.data) fwrite(text.data, 1, text.length, out);
  weft_text_free(&text);
}

void weft_tool_report(const weft_diag *diag, bool verbose) {
  uint64_t errors = 0;
  fflush(stdout);
  for (uint64_t i = 0; i < weft_diag_count(diag); i++) {
    const weft_message *message = weft_diag_message(diag, i);
    errors += message->severity == WEFT_ERROR;
    if (message->severity != WEFT_NOTE || verbose) print_message(message);
  }
  if (weft_diag_errors(diag) > errors)
    fprintf(stderr, "weft: and %" PRIu64 " more errors\n", weft_diag_errors(diag) - errors);
}

void weft_tool_error(const char *hint, const char *format, ...) {
  weft_text text = {0};
  va_list arguments;
  va_start(arguments, format);
  weft_text_vprintf(&text, format, arguments);
  va_end(arguments);
  fflush(stdout);
  print_message(&(weft_message){.severity = WEFT_ERROR, .text = text.data ? text.data : format, .hint = hint});
  weft_text_free(&text);
}

int weft_tool_finish(weft_status status, weft_diag *diag, const weft_arguments *arguments) {
  weft_tool_step_end();
  if (diag)
    weft_tool_report(diag, arguments->verbose);
  else
    weft_tool_error(NULL, "out of memory");
  int exit_code = weft_status_exit_code(diag ? status : WEFT_UNAVAILABLE);
  weft_diag_free(diag);
  return weft_tool_written(exit_code);
}

int weft_tool_written(int exit_code) {
  if ((!fflush(stdout) && !ferror(stdout)) || exit_code) return exit_code;
  weft_tool_error("check the disk or the reader of the pipe", "cannot write standard output: %s", strerror(errno));
  return weft_status_exit_code(WEFT_UNAVAILABLE);
}
