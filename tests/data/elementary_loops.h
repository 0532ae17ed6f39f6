#ifndef WEFT_TESTS_ELEMENTARY_LOOPS_H
#define WEFT_TESTS_ELEMENTARY_LOOPS_H

#include <stddef.h>

enum {
  ELEMENTARY_LOOPS = 15,
  /* The parameters of the "rsqrt of a mean". */
  ELEMENTARY_OVER = 5120,
  ELEMENTARY_EPS_NANO = 10000,
};

typedef struct elementary_loop {
  const char *name;
  void (*run)(const float *in, float *out, size_t count);
} elementary_loop;

extern const elementary_loop elementary_loops_plain[ELEMENTARY_LOOPS];
extern const elementary_loop elementary_loops_avx2[ELEMENTARY_LOOPS];
extern const elementary_loop elementary_loops_avx512[ELEMENTARY_LOOPS];

#endif
