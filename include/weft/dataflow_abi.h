/* weft/dataflow_abi.h: what C emitted from dataflow modules shares with whoever calls it. Includes nothing of weft but
 * the arithmetic of f16, bf16 and the elementary functions, which it only declares.
 *
 * Every entry of a module is one function; weft_df_entries lists them. Values go in and out as words: integers
 * sign-extended (i1 as 0 and 1), floats as the bits of their format, zero-extended. */
#ifndef WEFT_DATAFLOW_ABI_H
#define WEFT_DATAFLOW_ABI_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WEFT_DATAFLOW_ABI_VERSION 2

/** A memory of `count` elements in their own C type: int8_t to int64_t (i1: uint8_t; index: int64_t; other widths:
 * int64_t), float, double, uint16_t for f16 and bf16. written[i] == 0 where element i must not be read; NULL: all may
 * be. */
typedef struct weft_df_memory {
  void *data;
  uint64_t count;
  unsigned char *written;
} weft_df_memory;

typedef struct weft_df_env weft_df_env;
/** What an entry needs from outside. Channels are numbers that the caller gave it. */
struct weft_df_env {
  /** Puts a word into a channel; 0, or nonzero when the program is to end. */
  int (*send)(weft_df_env *env, uint32_t channel, uint64_t word);
  /** Takes the next word, waiting for it; 0, or nonzero when none will come. */
  int (*receive)(weft_df_env *env, uint32_t channel, uint64_t *word);
  /** Looks at the next word without taking it; 0 when there is one. Never waits. May be NULL where no entry has
   * streams. */
  int (*peek)(weft_df_env *env, uint32_t channel, uint64_t *word);
  /** Waits until one of these channels has a word; 0, or nonzero when none will come. */
  int (*wait)(weft_df_env *env, const uint32_t *channels, uint32_t count);
  /** One pointer an entry, NULL at first: what token machines keep from one launch to the next; the owner frees each.
   * May be NULL: nothing is kept. */
  void **machines;
  void *context;
  uint32_t line;    /**< after a fault: the line of the op in the MLIR text */
  const char *text; /**< after a fault: what it was */
};

/** Runs an entry: words of the value inputs, memories and channels each in the order of the inputs. A graph's stream
 * results are channels, too, behind its stream inputs. Returns 0, or 1 after a fault. */
typedef int (*weft_df_function)(weft_df_env *env, const uint64_t *values, weft_df_memory *const *memories,
                                const uint32_t *channels, uint64_t *results);

/** What an entry does with an input or result. */
typedef enum weft_df_use {
  WEFT_DF_TOKEN, /**< type none: not handed over */
  WEFT_DF_VALUE,
  WEFT_DF_MEMORY,
  WEFT_DF_UNUSED,  /**< a channel that it does not touch */
  WEFT_DF_RECEIVE, /**< a channel or stream that it takes from */
  WEFT_DF_SEND,
  WEFT_DF_RECEIVE_AND_SEND
} weft_df_use;

typedef struct weft_df_port {
  const char *type; /**< in MLIR text; of a channel or stream the type of its tokens */
  uint32_t use;     /**< weft_df_use */
  uint32_t given;   /**< the input's place in the program before it was lowered */
} weft_df_port;

typedef struct weft_df_entry {
  const char *name;
  weft_df_function run;
  uint32_t values, memories, channels, results;
  const char *form;          /**< "loops", "machine" or "thread": how it was emitted */
  const weft_df_port *ports; /**< inputs, value results, stream results */
  uint32_t inputs, streams;  /**< inputs in all; stream results */
  int32_t chip;              /**< where a thread's attribute weft.chip puts it, or -1 */
  const char *file;          /**< the MLIR text it was made from, which lines are of */
} weft_df_entry;

/* ---- for emitted code only ------------------------------------------------------------------------------------ */

float weft_expf(float x);
float weft_logf(float x);
float weft_tanhf(float x);
float weft_erff(float x);
float weft_maximum_f32(float a, float b);
float weft_minimum_f32(float a, float b);
float weft_bf16_to_f32(uint16_t bits);
uint16_t weft_f32_to_bf16(float value);
float weft_fp16_to_f32(uint16_t bits);
uint16_t weft_f32_to_fp16(float value);

#define WEFT_DF_INLINE static inline __attribute__((unused))
#define WEFT_DF_FAULT(at, what)                                                                                        \
  do {                                                                                                                 \
    env->line = (at);                                                                                                  \
    env->text = (what);                                                                                                \
    goto failed;                                                                                                       \
  } while (0)
#define WEFT_DF_NEVER(x) __builtin_expect(!!(x), 0)

/* The integer as a type of `width` bits without a C type of its own holds it. */
WEFT_DF_INLINE int64_t weft_df_wrap(uint32_t width, uint64_t bits) {
  return (int64_t)(bits << (64 - width)) >> (64 - width);
}
WEFT_DF_INLINE uint64_t weft_df_mask(uint32_t width, uint64_t bits) { return bits & (((uint64_t)1 << width) - 1); }
WEFT_DF_INLINE int64_t weft_df_least(uint32_t width) { return (int64_t)(~(uint64_t)0 << (width - 1)); }

WEFT_DF_INLINE float weft_df_float(uint64_t word) {
  uint32_t bits = (uint32_t)word;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
WEFT_DF_INLINE uint64_t weft_df_float_word(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
WEFT_DF_INLINE double weft_df_double(uint64_t word) {
  double value;
  memcpy(&value, &word, sizeof value);
  return value;
}
WEFT_DF_INLINE uint64_t weft_df_double_word(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
WEFT_DF_INLINE double weft_df_maximum(double a, double b) {
  return isnan(a) || isnan(b) ? (double)NAN : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
WEFT_DF_INLINE double weft_df_minimum(double a, double b) { return -weft_df_maximum(-a, -b); }
WEFT_DF_INLINE float weft_df_maxnum32(float a, float b) { return isnan(a) ? b : isnan(b) ? a : weft_maximum_f32(a, b); }
WEFT_DF_INLINE float weft_df_minnum32(float a, float b) { return isnan(a) ? b : isnan(b) ? a : weft_minimum_f32(a, b); }
WEFT_DF_INLINE double weft_df_maxnum64(double a, double b) {
  return isnan(a) ? b : isnan(b) ? a : weft_df_maximum(a, b);
}
WEFT_DF_INLINE double weft_df_minnum64(double a, double b) {
  return isnan(a) ? b : isnan(b) ? a : weft_df_minimum(a, b);
}
/* Rounds of a loop that counts up from a while below b. */
WEFT_DF_INLINE uint64_t weft_df_rounds(int64_t a, int64_t b, int64_t step) {
  return a < b ? ((uint64_t)b - (uint64_t)a - 1) / (uint64_t)step + 1 : 0;
}
WEFT_DF_INLINE uint64_t weft_df_rounds_unsigned(uint64_t a, uint64_t b, uint64_t step) {
  return a < b ? (b - a - 1) / step + 1 : 0;
}

#endif
