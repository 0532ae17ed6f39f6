/* The command line of emitted programs. */
#include "run_private.h"

#include "product_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Option, value's name (NULL: a flag), help. */
#define OPTIONS(ROW)                                                                                                   \
  ROW(in, "FILE", "read inputs and parameters from this HDF5 file")                                                    \
  ROW(out, "FILE", "write the results there: the old file or all of the new, never a part")                            \
  ROW(steps, "N", "run the program N times, chaining its states (default 1)")                                          \
  ROW(advance, "NAME", "an input of integers, such as a position, that is one greater at every step")                  \
  ROW(dry_run, NULL, "check the input, the memory and the number of ranks, and stop")                                  \
  ROW(map, NULL, "print where every rank is: host, chips, threads, cores")                                             \
  ROW(stats, NULL, "print time, work and communication of every section")                                              \
  ROW(timeout, "SECONDS", "give up when a message takes longer (default: wait for ever)")                              \
  ROW(kernel, "NAME", "use these kernels (WEFT_KERNEL does the same)")                                                 \
  ROW(kernel_strict, NULL, "refuse what the kernels do not cover, instead of plain C")                                 \
  ROW(threads, "N", "threads a chip (default OMP_NUM_THREADS, shared among the chips of a process)")                   \
  ROW(host_ranks, "N", "see every N ranks of a host as a host of their own, which share no memory with others")        \
  ROW(message_limit, "BYTES", "cut larger messages (default 1073741824)")                                              \
  ROW(version, NULL, "print the program, and the versions of weft, its arithmetic and its ABI")                        \
  ROW(help, NULL, "print this")

typedef enum option {
#define ROW(name, value, text) OPTION_##name,
  OPTIONS(ROW)
#undef ROW
      OPTION_COUNT
} option;

static const struct {
  const char *name, *value, *text;
} option_table[OPTION_COUNT] = {
#define ROW(name, value, text) {#name, value, text},
    OPTIONS(ROW)
#undef ROW
};

/* Whether `given` (length bytes, after --) is the option: words are joined by - on the command line. */
static bool is_option(option index, const char *given, size_t length) {
  const char *name = option_table[index].name;
  if (strlen(name) != length) return false;
  for (size_t i = 0; i < length; i++)
    if ((name[i] == '_' ? '-' : name[i]) != given[i]) return false;
  return true;
}

static bool read_number(const char *text, uint64_t least, uint64_t *number) {
  char *end;
  errno = 0;
  if (*text < '0' || *text > '9') return false;
  unsigned long long value = strtoull(text, &end, 10);
  *number = value;
  return errno == 0 && !*end && value >= least;
}

static bool read_seconds(const char *text, double *seconds) {
  char *end;
  *seconds = strtod(text, &end);
  return end != text && !*end && isfinite(*seconds) && *seconds >= 0;
}

/* The names of kernels are known to the table alone, so that help and messages agree. */
static bool set_option(weft_run_options *options, option index, const char *value, weft_run_question *asked) {
  switch (index) {
  case OPTION_in: options->in = value; return true;
  case OPTION_out: options->out = value; return true;
  case OPTION_advance: options->advance = value; return true;
  case OPTION_kernel: options->kernel = value; return true;
  case OPTION_steps: return read_number(value, 1, &options->steps);
  case OPTION_threads: return read_number(value, 1, &options->threads);
  case OPTION_host_ranks: return read_number(value, 1, &options->host_ranks) && options->host_ranks <= INT32_MAX;
  case OPTION_message_limit: return read_number(value, 64, &options->message_limit);
  case OPTION_timeout: return read_seconds(value, &options->timeout);
  case OPTION_dry_run: options->dry_run = true; return true;
  case OPTION_map: options->map = true; return true;
  case OPTION_stats: options->stats = true; return true;
  case OPTION_kernel_strict: options->kernel_strict = true; return true;
  case OPTION_version: *asked = WEFT_ASKED_VERSION; return true;
  default: *asked = WEFT_ASKED_HELP; return true;
  }
}

static weft_status read_option(int argc, char **argv, int *at, weft_run_options *options, weft_run_question *asked,
                               weft_diag *diag) {
  const char *given = argv[*at];
  const char *equals = strchr(given, '=');
  size_t length = equals ? (size_t)(equals - given) : strlen(given);
  bool dashes = strncmp(given, "--", 2) == 0;
  option index = 0;
  while (index < OPTION_COUNT && !(dashes && is_option(index, given + 2, length - 2))) index++;
  if (strcmp(given, "-h") == 0) index = OPTION_help;
  if (index == OPTION_COUNT)
    return weft_error(diag, WEFT_USAGE, "--help lists the options", "unknown argument '%s'", given);
  bool takes = option_table[index].value != NULL;
  const char *value = equals ? equals + 1 : NULL;
  if (takes && !value && *at + 1 < argc) value = argv[++*at];
  if (takes != (value != NULL))
    return weft_error(diag, WEFT_USAGE, "--help lists the options", takes ? "%s needs a value" : "%s takes no value",
                      given);
  if (!set_option(options, index, value, asked))
    return weft_error(diag, WEFT_USAGE, "--help lists the options", "'%s' is no %s for %.*s", value,
                      option_table[index].value, (int)length, given);
  return WEFT_OK;
}

weft_status weft_run_options_read(int argc, char **argv, weft_run_options *options, weft_run_question *asked,
                                  weft_diag *diag) {
  *options = (weft_run_options){.steps = 1};
  *asked = WEFT_ASKED_NOTHING;
  for (int i = 1; i < argc; i++) {
    weft_status status = read_option(argc, argv, &i, options, asked, diag);
    if (status != WEFT_OK) return status;
  }
  return WEFT_OK;
}

static void put_help(weft_text *text, const weft_abi_program *program, bool mpi) {
  weft_text_printf(text, "Runs '%s', a weft program for %u chip%s, %s.\n\n", program->name, program->chips,
                   program->chips == 1 ? "" : "s", mpi ? "one MPI rank a chip" : "every chip a thread of this process");
  if (mpi)
    weft_text_printf(text, "  mpirun -n %u out/run --in tensors.h5 --out result.h5\n\n", program->chips);
  else
    weft_text_puts(text, "  out/run-local --in tensors.h5 --out result.h5\n\n");
  for (option index = 0; index < OPTION_COUNT; index++) {
    char name[40];
    size_t length = 0;
    for (const char *at = option_table[index].name; *at; at++) name[length++] = *at == '_' ? '-' : *at;
    if (option_table[index].value) {
      name[length++] = ' ';
      for (const char *at = option_table[index].value; *at; at++) name[length++] = *at;
    }
    name[length] = 0;
    weft_text_printf(text, "  --%-22s %s\n", name, option_table[index].text);
  }
  weft_text_puts(text, "\nkernels:");
  for (uint32_t i = 0; weft_kernel_set_at(i); i++)
    weft_text_printf(text, " %s%s", weft_kernel_set_at(i)->name,
                     weft_kernel_set_at(i)->available() ? "" : " (not on this processor)");
  weft_text_puts(text,
                 "\nexit status: 0 done, 1 the input is wrong, 2 the command line is wrong, 3 the machine failed\n");
}

void weft_run_options_answer(weft_text *text, const weft_abi_program *program, weft_run_question asked, bool mpi) {
  if (asked == WEFT_ASKED_HELP)
    put_help(text, program, mpi);
  else
    weft_text_printf(text, "%s, a program for %u chip%s\nweft %s\narithmetic %u\nabi %u\n", program->name,
                     program->chips, program->chips == 1 ? "" : "s", WEFT_VERSION, program->arithmetic,
                     program->abi_version);
}
