/* The elementary functions for callers that need no vectors. */
#include "weft/arithmetic.h"
#include "weft/format.h"

float weft_expf(float x) { return weft_inline_expf(x); }
float weft_logf(float x) { return weft_inline_logf(x); }
float weft_tanhf(float x) { return weft_inline_tanhf(x); }
float weft_erff(float x) { return weft_inline_erff(x); }
float weft_recipf(float x) { return weft_inline_recipf(x); }
float weft_rsqrtf(float x, uint64_t over, uint64_t eps_nano) { return weft_inline_rsqrtf(x, over, eps_nano); }
float weft_siluf(float x) { return weft_inline_siluf(x); }
float weft_reluf(float x) { return weft_inline_reluf(x); }
