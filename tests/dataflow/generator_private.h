/* The generator of random programs: what its two files share. program_generator.c makes bodies of structured control,
 * thread_generator.c threads around regions with such bodies. */
#ifndef WEFT_TESTS_DATAFLOW_GENERATOR_PRIVATE_H
#define WEFT_TESTS_DATAFLOW_GENERATOR_PRIVATE_H

#include "program_generator.h"

enum { GENERATOR_NAMES = 400, GENERATOR_KINDS = 4, GENERATOR_MEMORIES = 40, GENERATOR_CHANNELS = 2 };
typedef enum kind { I32, INDEX, I1, F32 } kind;
extern const char *const generator_types[GENERATOR_KINDS];

/* A channel that sites may use here: %i or %o and its number. */
typedef struct generator_channel {
  int name;
  kind element;
} generator_channel;

typedef struct generator {
  const program_options *options;
  weft_text *text;
  uint64_t random;
  int indent, left, next;
  /* names visible here: values by kind, memories with whether they are static */
  int names[GENERATOR_KINDS][GENERATOR_NAMES], counts[GENERATOR_KINDS];
  struct {
    int name;
    bool fixed; /* memref<8xi32> */
  } memories[GENERATOR_MEMORIES];
  int memory_count;
  generator_channel in[GENERATOR_CHANNELS], out[GENERATOR_CHANNELS];
  int in_count, out_count;
} generator;

/* At most three values of any kinds, to be carried or yielded. */
typedef struct bundle {
  kind kinds[3];
  int count;
} bundle;

static inline uint32_t generator_below(generator *g, uint32_t n) {
  return (uint32_t)(weft_random_next(&g->random) >> 33) % n;
}
static inline bool generator_chance(generator *g, uint32_t percent) { return generator_below(g, 100) < percent; }

/* A visible value of this kind, recent ones more often; a constant is made where there is none. */
int generator_value(generator *g, kind k);
/* Makes the names from `first` on visible, one for each kind of the bundle. */
void generator_see(generator *g, int first, const bundle *b);
/* The statements of a whole body. */
void generator_body(generator *g);
/* A module with a thread @entry. */
void generator_thread(generator *g);

#endif
