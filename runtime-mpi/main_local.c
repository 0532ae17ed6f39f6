/* out/run-local: every chip is a thread of this process. */
#include "run_private.h"
#include "thread_transport_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct worker {
  weft_chip *chip;
  uint64_t runs;
  pthread_t thread;
  bool started;
} worker;

static void *work(void *context) {
  worker *self = context;
  weft_chip_run(self->chip, self->runs);
  return NULL;
}

/* One chip needs no thread beside the caller's. */
static void execute(weft_run *run) {
  uint64_t runs = run->options.steps;
  if (run->chip_count == 1) {
    weft_chip_run(&run->chips[0], runs);
    return;
  }
  worker *workers = calloc(run->chip_count, sizeof *workers);
  for (uint32_t i = 0; workers && i < run->chip_count; i++) {
    workers[i] = (worker){.chip = &run->chips[i], .runs = runs};
    workers[i].started = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    if (workers[i].started) continue;
    weft_chip_fault(&run->chips[i], WEFT_UNAVAILABLE, "raise the limit of threads, or run fewer chips",
                    "no thread could be started");
    run->process->stop(run->process);
    break;
  }
  if (!workers) weft_chip_fault(&run->chips[0], WEFT_UNAVAILABLE, NULL, "out of memory for threads");
  for (uint32_t i = 0; workers && i < run->chip_count; i++)
    if (workers[i].started) pthread_join(workers[i].thread, NULL);
  free(workers);
}

static weft_endpoint *connect_chip(void *context, uint32_t chip) { return weft_thread_net_end(context, chip); }

static int run_program(const weft_abi_program *program, const weft_run_options *options) {
  weft_thread_net *net = weft_thread_net_new(program->chips);
  if (!net) {
    fputs("weft: out of memory\n", stderr);
    return weft_status_exit_code(WEFT_UNAVAILABLE);
  }
  weft_thread_net_timeout(net, options->timeout);
  int code = weft_run_main(&(weft_run_job){.program = program,
                                           .options = *options,
                                           .process = weft_thread_net_process(net),
                                           .count = program->chips,
                                           .connect = connect_chip,
                                           .context = net,
                                           .execute = execute,
                                           .to_terminal = isatty(STDERR_FILENO) != 0});
  weft_thread_net_free(net);
  return code;
}

int weft_main_local(const weft_abi_program *program, int argc, char **argv) {
  weft_run_options options;
  weft_run_question asked;
  weft_diag *diag = weft_diag_new();
  weft_status status = weft_run_options_read(argc, argv, &options, &asked, diag);
  int code = weft_status_exit_code(status);
  if (status != WEFT_OK) {
    weft_run_print(diag);
  } else if (asked) {
    weft_text text = {0};
    weft_run_options_answer(&text, program, asked, false);
    code = weft_status_exit_code(weft_run_say(&text, diag));
    weft_run_print(diag);
  } else {
    code = run_program(program, &options);
  }
  weft_diag_free(diag);
  return code;
}
