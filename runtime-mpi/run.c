/* A run: the program checked, the local chips made, all ranks compared. */
#include "run_private.h"

#include "product_private.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the program ---- */

uint64_t weft_run_hash(const weft_abi_program *program) {
  uint64_t hash = weft_hash_bytes(0, &program->chips, sizeof program->chips);
  for (uint32_t k = 0; k < program->class_count; k++)
    hash = weft_hash_bytes(hash, &program->classes[k]->hash, sizeof program->classes[k]->hash);
  return hash;
}

static weft_status refuse(weft_diag *diag, const char *what, const char *name) {
  return weft_error(diag, WEFT_INVALID, "generate the program again: weft codegen", "%s '%s'", what, name);
}

static bool list_inside(const int64_t *list, uint32_t count) {
  for (; list && *list >= 0; list++)
    if (*list >= count) return false;
  return true;
}

/* Whether every chip has the series, and all its numbers are from 0 and below `bound`. */
static bool series_inside(const weft_abi_class *class, int64_t first, bool ring, uint32_t count, int64_t bound) {
  if (first < 0 || (uint64_t)first + (ring ? 4 : count) > class->parameter_count) return false;
  for (uint32_t c = 0; c < class->chip_count; c++) {
    const int64_t *p = class->parameters + (uint64_t)c * class->parameter_count + (uint64_t)first;
    if (ring && (p[0] < 0 || p[0] >= bound || p[1] < 0 || p[1] > bound || p[2] < 1 || p[2] > UINT32_MAX || p[3] < 0))
      return false;
    for (uint32_t i = 0; i < count; i++) {
      int64_t value = weft_series_at(p, ring, i);
      if (value < 0 || value >= bound) return false;
    }
  }
  return true;
}

static bool crossings_inside(const weft_abi_class *class, uint32_t chips, const weft_abi_crossing *crossings,
                             uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t times = weft_crossing_count(&crossings[i]);
    if (crossings[i].tensor < 0 || weft_crossing_tensor(&crossings[i], times - 1) >= class->tensor_count) return false;
    if (!series_inside(class, crossings[i].peer, crossings[i].ring != 0, times, chips)) return false;
  }
  return true;
}

/* Whether parameters first .. first + count - 1 of every chip are at least `least` and below `bound`. */
static bool parameters_inside(const weft_abi_class *class, int64_t first, uint32_t count, int64_t least,
                              int64_t bound) {
  if (first < 0 || (uint64_t)first + count > class->parameter_count) return false;
  for (uint32_t c = 0; c < class->chip_count; c++)
    for (uint32_t i = 0; i < count; i++) {
      int64_t value = class->parameters[(uint64_t)c * class->parameter_count + (uint64_t)first + i];
      if (value < least || value >= bound) return false;
    }
  return true;
}

static bool all_reduce_inside(const weft_abi_class *class, uint32_t chips, const weft_abi_all_reduce *reduce) {
  return weft_all_reduce_valid(reduce) && reduce->out < (int64_t) class->tensor_count &&
         parameters_inside(class, reduce->node_chip, reduce->node_count, 0, chips) &&
         parameters_inside(class, reduce->node_slot, reduce->node_count, -1, class->tensor_count) &&
         parameters_inside(class, reduce->reader_chip, reduce->reader_count, 0, chips);
}

static weft_status check_step(const weft_abi_class *class, uint32_t chips, const weft_abi_step *step, weft_diag *diag) {
  const char *name = step->name ? step->name : "?";
  if (!list_inside(step->reads, class->tensor_count) || !list_inside(step->writes, class->tensor_count))
    return refuse(diag, "a tensor that does not exist is listed by step", name);
  if (step->work < 0 || (step->work && step->work >= class->parameter_count))
    return refuse(diag, "no parameter for the flops of step", name);
  switch (step->kind) {
  case WEFT_STEP_SECTION:
    if (step->parameter > class->parameter_count)
      return refuse(diag, "parameters that do not exist are given to section", name);
    return step->section ? WEFT_OK : refuse(diag, "no function for section", name);
  case WEFT_STEP_LINK:
    if (step->link && crossings_inside(class, chips, step->link->sends, step->link->send_count) &&
        crossings_inside(class, chips, step->link->receives, step->link->receive_count))
      return WEFT_OK;
    return refuse(diag, "a chip or tensor that does not exist is named by link", name);
  case WEFT_STEP_ALL_REDUCE:
    if (step->all_reduce && all_reduce_inside(class, chips, step->all_reduce)) return WEFT_OK;
    return refuse(diag, "the nodes do not form one tree over all segments in all-reduce", name);
  default: return refuse(diag, "unknown kind of step", name);
  }
}

static weft_status check_tensor(const weft_abi_class *class, const weft_abi_tensor *tensor, weft_diag *diag) {
  if (tensor->format < 0 || tensor->format >= WEFT_FORMAT_COUNT || tensor->rank < 0 || tensor->rank > WEFT_MAX_RANK)
    return refuse(diag, "unknown format or rank of tensor", tensor->name);
  if (tensor->place >= 0 && (uint64_t)tensor->place + 2 >= class->parameter_count)
    return refuse(diag, "no parameters for the place of tensor", tensor->name);
  if (tensor->size && (tensor->size < 0 || (uint64_t)tensor->size + 1 >= class->parameter_count))
    return refuse(diag, "no parameters for the size of tensor", tensor->name);
  if (!tensor->dataset) return WEFT_OK;
  uint64_t rows, cols, row_end, col_end;
  weft_plane_extents((uint32_t)tensor->rank, tensor->extents, &rows, &cols);
  for (uint32_t c = 0; c < class->chip_count; c++) {
    const int64_t *parameters = class->parameters + (uint64_t)c * class->parameter_count;
    weft_block block = weft_tensor_block(tensor, parameters);
    weft_abi_tensor sized = weft_tensor_of_chip(tensor, parameters);
    if (weft_add_overflow(block.row0, sized.rows, &row_end) || weft_add_overflow(block.col0, sized.cols, &col_end) ||
        row_end > rows || col_end > cols)
      return refuse(diag, "the block leaves the dataset of tensor", tensor->name);
  }
  return WEFT_OK;
}

static weft_status check_class(const weft_abi_class *class, uint32_t chips, weft_diag *diag) {
  weft_status status = WEFT_OK;
  for (uint32_t t = 0; status == WEFT_OK && t < class->tensor_count; t++)
    status = check_tensor(class, &class->tensors[t], diag);
  for (uint32_t s = 0; status == WEFT_OK && s < class->step_count; s++)
    status = check_step(class, chips, &class->steps[s], diag);
  return status;
}

weft_status weft_run_check(const weft_abi_program *program, weft_diag *diag) {
  if (program->abi_version != WEFT_ABI_VERSION)
    return weft_error(diag, WEFT_INVALID, "generate and build the program again with this weft",
                      "the program was made for ABI %u; this runtime has ABI %d", program->abi_version,
                      WEFT_ABI_VERSION);
  if (program->arithmetic != WEFT_ARITHMETIC_VERSION)
    return weft_error(diag, WEFT_INVALID, "generate and build the program again with this weft",
                      "the program follows arithmetic %u; this runtime follows %d", program->arithmetic,
                      WEFT_ARITHMETIC_VERSION);
  weft_status status = program->chips ? WEFT_OK : refuse(diag, "no chips in program", program->name);
  for (uint32_t k = 0; status == WEFT_OK && k < program->class_count; k++)
    status = check_class(program->classes[k], program->chips, diag);
  return status;
}

/* ---- opening ---- */

static weft_status map_chips(weft_run *run, weft_diag *diag) {
  const weft_abi_program *program = run->program;
  run->class_of = calloc(program->chips, sizeof *run->class_of);
  run->row_of = calloc(program->chips, sizeof *run->row_of);
  if (!run->class_of || !run->row_of) return weft_error_memory(diag);
  for (uint32_t c = 0; c < program->chips; c++) run->class_of[c] = UINT32_MAX;
  for (uint32_t k = 0; k < program->class_count; k++)
    for (uint32_t i = 0; i < program->classes[k]->chip_count; i++) {
      uint32_t chip = program->classes[k]->chips[i];
      if (chip >= program->chips || run->class_of[chip] != UINT32_MAX)
        return refuse(diag, "a chip is in two classes of program", program->name);
      run->class_of[chip] = k;
      run->row_of[chip] = i;
    }
  for (uint32_t c = 0; c < program->chips; c++)
    if (run->class_of[c] == UINT32_MAX) return refuse(diag, "a chip is in no class of program", program->name);
  return WEFT_OK;
}

/* OMP_NUM_THREADS is shared among the process's chips. Without it the cores are: of this rank alone when it is bound to
 * some, else of all ranks of the host. */
static int threads_for(const weft_run *run) {
  uint64_t threads = run->options.threads, cores = (uint64_t)weft_allowed_cores();
  uint64_t sharers = cores < (uint64_t)sysconf(_SC_NPROCESSORS_ONLN) ? 1 : run->process->host_ranks;
  if (!threads && getenv("OMP_NUM_THREADS"))
    threads = (uint64_t)omp_get_max_threads() / run->chip_count;
  else if (!threads)
    threads = cores / (run->chip_count * sharers);
  return (int)weft_max_u64(1, weft_min_u64(threads, 1024));
}

static weft_status open_chip(weft_run *run, const weft_run_job *job, uint32_t index, weft_diag *diag) {
  weft_chip *chip = &run->chips[index];
  chip->run = run;
  chip->index = job->first + index;
  chip->class = run->program->classes[run->class_of[chip->index]];
  chip->row = run->row_of[chip->index];
  chip->parameters = chip->class->parameters + (uint64_t)chip->row * chip->class->parameter_count;
  chip->end = job->connect(job->context, chip->index);
  chip->kernels = run->kernels;
  chip->threads = run->threads;
  chip->strict = run->options.kernel_strict;
  chip->step = UINT32_MAX;
  pthread_mutex_init(&chip->fault.lock, NULL);
  if (run->options.stats) chip->times = calloc((size_t)chip->class->step_count + 1, sizeof *chip->times);
  if (run->options.stats && !chip->times) return weft_error_memory(diag);
  return weft_chip_survey(chip, diag);
}

weft_status weft_run_open(weft_run *run, const weft_run_job *job, weft_diag *diag) {
  const weft_abi_program *program = job->program;
  *run = (weft_run){.program = program, .options = job->options, .process = job->process};
  run->started = weft_seconds();
  run->to_terminal = job->to_terminal;
  weft_status status = weft_run_check(program, diag);
  if (status == WEFT_OK) status = map_chips(run, diag);
  if (status != WEFT_OK) return status;
  const char *kernel = run->options.kernel ? run->options.kernel : getenv("WEFT_KERNEL");
  run->kernels = weft_kernel_set_choose(kernel, diag);
  if (!run->kernels) return WEFT_USAGE;
  run->chips = calloc(job->count, sizeof *run->chips);
  if (!run->chips) return weft_error_memory(diag);
  run->chip_count = job->count;
  run->threads = threads_for(run);
  for (uint32_t i = 0; status == WEFT_OK && i < job->count; i++) status = open_chip(run, job, i, diag);
  return status;
}

void weft_run_close(weft_run *run) {
  for (uint32_t i = 0; i < run->chip_count; i++) weft_chip_close(&run->chips[i]);
  free(run->chips);
  free(run->class_of);
  free(run->row_of);
  run->chips = NULL;
  run->class_of = run->row_of = NULL;
  run->chip_count = 0;
}

/* ---- agreement ---- */

enum { SILENT = 256 };

weft_status weft_run_agree(weft_run *run, weft_status status, bool silent, bool *speaks) {
  weft_process *process = run->process;
  uint64_t word = (uint64_t)status | (silent ? SILENT : 0), *all = calloc(process->ranks, sizeof *all);
  *speaks = false;
  if (!all || !process->gather(process, &word, 1, all)) {
    free(all);
    *speaks = !silent; /* nobody can be asked */
    return status == WEFT_OK ? WEFT_UNAVAILABLE : status;
  }
  uint32_t speaker = UINT32_MAX;
  for (uint32_t r = 0; r < process->ranks; r++) {
    bool better = speaker == UINT32_MAX || (all[speaker] & SILENT && !(all[r] & SILENT));
    if ((all[r] & ~(uint64_t)SILENT) != WEFT_OK && better) speaker = r;
  }
  weft_status agreed = speaker == UINT32_MAX ? WEFT_OK : (weft_status)(all[speaker] & ~(uint64_t)SILENT);
  *speaks = speaker == process->rank;
  free(all);
  return agreed;
}

enum { COMPARED_WORDS = 4 };

weft_status weft_run_compare(weft_run *run, weft_diag *diag) {
  weft_process *process = run->process;
  static const char *const what[COMPARED_WORDS] = {"another program", "another ABI", "another arithmetic",
                                                   "other kernels"};
  uint64_t words[COMPARED_WORDS] = {weft_run_hash(run->program), WEFT_ABI_VERSION, WEFT_ARITHMETIC_VERSION,
                                    weft_hash_bytes(0, run->kernels->name, strlen(run->kernels->name))};
  uint64_t *all = calloc(process->ranks, sizeof words);
  if (!all) return weft_error_memory(diag);
  weft_status status = WEFT_OK;
  if (!process->gather(process, words, COMPARED_WORDS, all))
    status = weft_error(diag, WEFT_UNAVAILABLE, NULL, "the ranks cannot reach each other");
  for (uint32_t r = 1; status == WEFT_OK && r < process->ranks; r++)
    for (int w = 0; status == WEFT_OK && w < COMPARED_WORDS; w++) {
      if (all[(uint64_t)r * COMPARED_WORDS + (uint64_t)w] == all[w]) continue;
      if (w == COMPARED_WORDS - 1) { /* the bits are equal all the same */
        if (process->rank == 0)
          weft_diag_add(diag, WEFT_WARNING, (weft_place){0}, "choose one with --kernel for an even pace",
                        "rank %u runs %s than rank 0 (%s)", r, what[w], run->kernels->name);
        r = process->ranks;
        break;
      }
      status = weft_error(diag, WEFT_INVALID, "start the same build of the program on every rank",
                          "rank %u runs %s than rank 0", r, what[w]);
    }
  free(all);
  return status;
}
