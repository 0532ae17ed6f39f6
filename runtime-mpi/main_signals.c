/* The last words of a process that is ended from outside: who it was, what it did, whom it waited for.
 *
 * The handler only calls write, nanosleep and _exit; all names are in static tables or were put together beforehand. */
#include "run_private.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LISTED_CHIPS = 16, PREFIX = 96, LINE = 640, LINGER_SECONDS = 2 };

static struct {
  weft_run *volatile run;
  volatile sig_atomic_t quiet_status; /* -1: speak */
  atomic_flag spoken;                 /* by whichever thread a signal came to first */
  char prefix[LISTED_CHIPS][PREFIX];
} last_words = {.quiet_status = -1, .spoken = ATOMIC_FLAG_INIT};

static const int caught[] = {SIGTERM, SIGINT, SIGHUP};

typedef struct weft_line {
  char bytes[LINE];
  size_t length;
} weft_line;

static void add_text(weft_line *line, const char *text) {
  while (*text && line->length + 1 < LINE) line->bytes[line->length++] = *text++;
}

static void add_number(weft_line *line, uint64_t number) {
  char digits[21];
  size_t begin = sizeof digits - 1;
  digits[begin] = 0;
  do digits[--begin] = (char)('0' + number % 10);
  while (number /= 10);
  add_text(line, digits + begin);
}

static void add_peers(weft_line *line, const weft_waiting *waiting) {
  uint32_t count = waiting->count;
  if (count == 0) {
    add_text(line, ", computing");
    return;
  }
  add_text(line, count == 1 ? ", waiting for chip " : ", waiting for chips ");
  for (uint32_t i = 0; i < count && i < WEFT_WAITING_PEERS; i++) {
    if (i) add_text(line, ", ");
    add_number(line, waiting->peers[i]);
  }
}

static void speak(const weft_chip *chip, const char *prefix, int signal_number) {
  weft_line line = {.length = 0};
  add_text(&line, prefix);
  add_text(&line, "ended by signal ");
  add_number(&line, (uint64_t)signal_number);
  add_text(&line, " in run ");
  add_number(&line, chip->run_number + 1);
  add_text(&line, ", '");
  add_text(&line, weft_chip_step_name(chip));
  add_text(&line, "'");
  add_peers(&line, &chip->waiting);
  line.bytes[line.length++] = '\n';
  (void)!write(STDERR_FILENO, line.bytes, line.length);
}

/* mpirun means to give its processes a second between SIGTERM and SIGKILL, but the first of them that ends cuts the
 * second short (the SIGCHLD ends the sleep), and those that did not get a core until then end without a word. So nobody
 * ends before the others had time to speak; usually the SIGKILL comes first. */
static void linger(void) {
  struct timespec rest = {.tv_sec = LINGER_SECONDS};
  while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {}
}

static void handle(int signal_number) {
  if (last_words.quiet_status >= 0) _exit(last_words.quiet_status);
  const weft_run *run = last_words.run;
  bool first = !atomic_flag_test_and_set(&last_words.spoken);
  for (uint32_t i = 0; first && run && i < run->chip_count && i < LISTED_CHIPS; i++)
    speak(&run->chips[i], last_words.prefix[i], signal_number);
  if (run && run->process->ranks > 1) linger();
  _exit(weft_status_exit_code(WEFT_UNAVAILABLE));
}

void weft_signals_install(weft_run *run) {
  for (uint32_t i = 0; i < run->chip_count && i < LISTED_CHIPS; i++)
    snprintf(last_words.prefix[i], PREFIX, "weft: rank %u, chip %u: ", run->process->rank, run->chips[i].index);
  last_words.quiet_status = -1;
  last_words.run = run;
  struct sigaction action = {.sa_handler = handle};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
    struct sigaction old;
    /* What the parent chose to ignore stays ignored. */
    if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(caught[i], &action, NULL);
  }
}

void weft_signals_quiet(int status) { last_words.quiet_status = status; }

void weft_signals_end_within(unsigned seconds, int status) {
  weft_signals_quiet(status);
  struct sigaction action = {.sa_handler = handle};
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, NULL);
  alarm(seconds);
}

void weft_signals_remove(void) {
  last_words.run = NULL;
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
    struct sigaction old;
    if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler == handle) signal(caught[i], SIG_DFL);
  }
}
