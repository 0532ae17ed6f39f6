/* The program that test_mpi starts: run_shape mpi|local SHAPE [arguments of out/run]; run_shape inputs SHAPE FILE
 * writes inputs. */
#include "programs.h"

#include <stdio.h>
#include <string.h>

static int write_inputs(const test_shape *shape, const char *path) {
  weft_array_set set = {0};
  bool ok = test_inputs(shape, 5, &set) && weft_array_set_write(path, &set, NULL) == WEFT_OK;
  weft_array_set_free(&set);
  return ok ? 0 : 3;
}

int main(int argc, char **argv) {
  test_shape shape;
  if (argc < 3 || !test_shape_read(argv[2], &shape)) {
    fputs("usage: run_shape mpi|local|inputs SHAPE [arguments]\n", stderr);
    return 2;
  }
  if (strcmp(argv[1], "inputs") == 0) return argc > 3 ? write_inputs(&shape, argv[3]) : 2;
  weft_arena *arena = weft_arena_new();
  const weft_abi_program *program = test_program_new(arena, &shape);
  if (!program) return 3;
  bool mpi = strcmp(argv[1], "mpi") == 0;
  argv[2] = argv[0];
  int code = mpi ? weft_main_mpi(program, argc - 2, argv + 2) : weft_main_local(program, argc - 2, argv + 2);
  weft_arena_free(arena);
  return code;
}
