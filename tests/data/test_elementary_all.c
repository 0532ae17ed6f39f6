/* The functions of one fp32 value over every fp32 input: see elementary_truth.h. One input of SAMPLED is asked of MPFR
 * whatever doubles say, which checks the doubles, too, and there the function that is no loop must give the same bits.
 * Usage: test_elementary_all [NAME [FROM TO]]: one function, over the blocks from FROM to TO of 4096. */
#include "elementary_loops.h"
#include "elementary_truth.h"
#include "weft/arithmetic.h"
#include "weft/base.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 20, PIECE = 1 << 12, BLOCKS = 1 << 12, SAMPLED = 4093 };

typedef struct block_result {
  uint64_t wrong, example, asked;
  double worst;
  uint32_t worst_at;
} block_result;

typedef struct sweep_range {
  const elementary *f;
  void (*loop)(const float *in, float *out, size_t count);
  uint64_t from;
} sweep_range;

static block_result results[BLOCKS];

static void check_value(const elementary *f, float x, float value, block_result *result) {
  uint32_t bits = weft_bits_of_f32(x);
  questions asked = {.always = bits % SAMPLED == 0};
  double error;
  bool right = is_right(f, x, value, &asked, &error) && !asked.double_failed;
  if (asked.always) right &= same_number(value, f->ours(x));
  result->asked += asked.mpfr;
  if (!right) {
    result->wrong++;
    result->example = bits;
  }
  if (error > result->worst) {
    result->worst = error;
    result->worst_at = bits;
  }
}

static void check_block(void *context, uint64_t index) {
  const sweep_range *sweep = context;
  uint64_t block = sweep->from + index;
  block_result result = {0};
  float in[PIECE], out[PIECE];
  for (uint64_t piece = 0; piece < BLOCK; piece += PIECE) {
    for (uint64_t i = 0; i < PIECE; i++) in[i] = weft_f32_of_bits((uint32_t)(block * BLOCK + piece + i));
    sweep->loop(in, out, PIECE);
    for (uint64_t i = 0; i < PIECE; i++) check_value(sweep->f, in[i], out[i], &result);
  }
  results[block] = result;
}

static bool check_all(const elementary *f, const elementary_loop *loops, uint64_t from, uint64_t to) {
  sweep_range sweep = {.f = f, .from = from};
  for (int i = 0; i < ELEMENTARY_LOOPS; i++)
    if (!strcmp(loops[i].name, f->name)) sweep.loop = loops[i].run;
  weft_parallel_for(to - from, 0, check_block, &sweep);
  block_result all = {0};
  for (uint64_t block = from; block < to; block++) {
    all.asked += results[block].asked;
    all.wrong += results[block].wrong;
    if (results[block].wrong) all.example = results[block].example;
    if (results[block].worst <= all.worst) continue;
    all.worst = results[block].worst;
    all.worst_at = results[block].worst_at;
  }
  printf("%s: %" PRIu64 " inputs, %" PRIu64 " questions to MPFR, %" PRIu64 " wrong", f->name, (to - from) * BLOCK,
         all.asked, all.wrong);
  if (all.wrong) printf(", for example at 0x%08" PRIx64, all.example);
  if (f->defined) printf("; by definition");
  if (f->real) printf("; at most %.5f ulp, at 0x%08" PRIx32, all.worst, all.worst_at);
  printf("\n");
  fflush(stdout);
  return !all.wrong;
}

/* The widest loops that this machine runs: test_elementary_widths compares them with the plain ones. */
static const elementary_loop *widest_loops(void) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return elementary_loops_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return elementary_loops_avx2;
#endif
  return elementary_loops_plain;
}

int main(int argc, char **argv) {
  bool right = true, found = false;
  uint64_t from = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
  uint64_t to = argc > 3 ? strtoull(argv[3], NULL, 10) : BLOCKS;
  if (from >= to || to > BLOCKS) return 2;
  for (int f = 0; f < ELEMENTARY_FUNCTIONS; f++) {
    if (argc > 1 && strcmp(argv[1], elementary_functions[f].name) != 0) continue;
    found = true;
    right &= check_all(&elementary_functions[f], widest_loops(), from, to);
  }
  return found && right ? 0 : 1;
}
