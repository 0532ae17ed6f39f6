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
static void loop_recip(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_recipf(in[i]);
}
static void loop_rsqrt(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_rsqrtf(in[i], 1, 0);
}
static void loop_rsqrt_mean(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_rsqrtf(in[i], ELEMENTARY_OVER, ELEMENTARY_EPS_NANO);
}
static void loop_silu(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_siluf(in[i]);
}
static void loop_relu(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = weft_inline_reluf(in[i]);
}
static void loop_divide(const float *in, float *out, size_t count) {
  for (size_t i = 0; i < count; i++) out[i] = in[i] / in[count - 1 - i];
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
    {"exp", loop_exp},       {"ln", loop_log},          {"tanh", loop_tanh},
    {"erf", loop_erf},       {"recip", loop_recip},     {"rsqrt", loop_rsqrt},
    {"silu", loop_silu},     {"relu", loop_relu},       {"rsqrt of a mean", loop_rsqrt_mean},
    {"divide", loop_divide}, {"maximum", loop_maximum}, {"minimum", loop_minimum},
    {"bf16", loop_bf16},     {"fp16", loop_fp16},       {"fp8", loop_fp8},
};
