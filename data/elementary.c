/* The elementary functions for callers that need no vectors. */
#include "weft/arithmetic.h"
#include "weft/format.h"

float weft_expf(float x) { return weft_inline_expf(x); }
float weft_logf(float x) { return weft_inline_logf(x); }
float weft_tanhf(float x) { return weft_inline_tanhf(x); }
float weft_erff(float x) { return weft_inline_erff(x); }
