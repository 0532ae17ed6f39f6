/* The program that test_mpi starts: run_shape mpi|local SHAPE [arguments of out/run]; run_shape inputs SHAPE FILE
 * writes inputs; run_shape library SHAPE runs it as a host application would, twice, from arrays to arrays. */
#include "programs.h"

#include "weft/program_run.h"

#include <stdio.h>
#include <string.h>

static int write_inputs(const test_shape *shape, const char *path) {
  weft_array_set set = {0};
  bool ok = test_inputs(shape, 5, &set) && weft_array_set_write(path, &set, NULL) == WEFT_OK;
  weft_array_set_free(&set);
  return ok ? 0 : 3;
}

static bool equal(const weft_array_set *got, const weft_array_set *want) {
  for (uint64_t i = 0; i < want->count; i++) {
    const weft_array *array = weft_array_set_find(got, want->items[i].name);
    weft_difference difference;
    if (!array || weft_array_compare(array, &want->items[i], &difference, NULL) != WEFT_OK || difference.differing)
      return false;
  }
  return true;
}

static int run_once(const weft_abi_program *program, const test_shape *shape, uint64_t seed, uint64_t steps, int rank) {
  weft_array_set in = {0}, out = {0}, want = {0};
  int code = test_inputs(shape, seed, &in) && test_results(shape, &in, steps, &want) ? 0 : 3;
  if (code == 0) code = weft_program_run_steps_mpi(program, MPI_COMM_WORLD, steps, &in, &out);
  if (code == 0 && rank == 0 && !equal(&out, &want)) {
    fputs("results differ\n", stderr);
    code = 4;
  }
  if (rank != 0 && out.count) code = 5;
  weft_array_set_free(&in);
  weft_array_set_free(&out);
  weft_array_set_free(&want);
  return code;
}

/* What fails for one call leaves the next one its communicator. */
static int run_library(const weft_abi_program *program, const test_shape *shape, int *argc, char ***argv) {
  int provided, rank, code;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  code = run_once(program, shape, 5, 1, rank);
  weft_array_set nothing = {0}, out = {0};
  if (code == 0 && weft_program_run_mpi(program, MPI_COMM_WORLD, &nothing, &out) != 1) code = 6;
  if (code == 0) code = run_once(program, shape, 6, 3, rank);
  weft_array_set_free(&out);
  MPI_Finalize();
  return code;
}

int main(int argc, char **argv) {
  test_shape shape;
  if (argc < 3 || !test_shape_read(argv[2], &shape)) {
    fputs("usage: run_shape mpi|local|library|inputs SHAPE [arguments]\n", stderr);
    return 2;
  }
  if (strcmp(argv[1], "inputs") == 0) return argc > 3 ? write_inputs(&shape, argv[3]) : 2;
  weft_arena *arena = weft_arena_new();
  const weft_abi_program *program = test_program_new(arena, &shape);
  if (!program) return 3;
  int code;
  if (strcmp(argv[1], "library") == 0) {
    code = run_library(program, &shape, &argc, &argv);
  } else {
    bool mpi = strcmp(argv[1], "mpi") == 0;
    argv[2] = argv[0];
    code = mpi ? weft_main_mpi(program, argc - 2, argv + 2) : weft_main_local(program, argc - 2, argv + 2);
  }
  weft_arena_free(arena);
  return code;
}
