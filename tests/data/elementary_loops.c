/* Every inline function of weft/arithmetic.h as a loop over an array, compiled once for each vector width. */
#include "elementary_loops.h"

#include "weft/arithmetic.h"

#define JOIN(a, b) a##_##b
#define NAME(a, b) JOIN(a, b)

static void loop_exp(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_expf(in[i]);
}
static void loop_log(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_logf(in[i]);
}
static void loop_tanh(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_tanhf(in[i]);
}
static void loop_erf(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_erff(in[i]);
}
static void loop_maximum(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_maximum_f32(in[i], in[count - 1 - i]);
}
static void loop_minimum(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_minimum_f32(in[i], in[count - 1 - i]);
}
static void loop_bf16(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_bf16_to_f32(weft_inline_f32_to_bf16(in[i]));
}
static void loop_fp16(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_fp16_to_f32(weft_inline_f32_to_fp16(in[i]));
}
static void loop_fp8(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_fp8_to_f32(weft_inline_f32_to_fp8(in[i]));
}

const elementary_loop NAME(elementary_loops, LOOPS)[ELEMENTARY_LOOPS] = {
    {"exp", loop_exp},         {"log", loop_log},   {"tanh", loop_tanh}, {"erf", loop_erf}, {"maximum", loop_maximum},
    {"minimum", loop_minimum}, {"bf16", loop_bf16}, {"fp16", loop_fp16}, {"fp8", loop_fp8},
};
