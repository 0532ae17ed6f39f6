/* Floats of any width as bits: one rounding from double, exact widening. */
#include "internal.h"

#include <math.h>

/* What becomes of the largest exponent. */
typedef enum flavour {
  IEEE,      /* infinities and NaNs */
  FINITE,    /* one NaN, all ones; no infinity */
  UNSIGNED_0 /* one NaN in place of -0; no infinity */
} flavour;

typedef struct layout {
  const char *name;
  uint32_t mantissa, exponent;
  int32_t bias;
  flavour flavour;
} layout;

static const layout layouts[] = {
    {"f16", 10, 5, 15, IEEE},
    {"bf16", 7, 8, 127, IEEE},
    {"tf32", 10, 8, 127, IEEE},
    {"f8E5M2", 2, 5, 15, IEEE},
    {"f8E4M3", 3, 4, 7, IEEE},
    {"f8E3M4", 4, 3, 3, IEEE},
    {"f8E4M3FN", 3, 4, 7, FINITE},
    {"f8E5M2FNUZ", 2, 5, 16, UNSIGNED_0},
    {"f8E4M3FNUZ", 3, 4, 8, UNSIGNED_0},
    {"f8E4M3B11FNUZ", 3, 4, 11, UNSIGNED_0},
};

static const layout *layout_of(const weft_mlir_type *type) {
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    if (strcmp(layouts[i].name, type->name) == 0) return &layouts[i];
  return NULL;
}

static uint64_t ones(uint32_t bits) { return ((uint64_t)1 << bits) - 1; }

static uint64_t nan_bits(const layout *l) {
  if (l->flavour == UNSIGNED_0) return (uint64_t)1 << (l->mantissa + l->exponent);
  if (l->flavour == FINITE) return ones(l->mantissa + l->exponent);
  return ones(l->exponent) << l->mantissa | (uint64_t)1 << (l->mantissa - 1);
}

/* Where the finite numbers end: the first exponent and mantissa, as one number, that is none of them. */
static uint64_t beyond(const layout *l) {
  if (l->flavour == IEEE) return ones(l->exponent) << l->mantissa;
  return l->flavour == FINITE ? ones(l->exponent + l->mantissa) : ones(l->exponent + l->mantissa) + 1;
}

static uint64_t narrow(const layout *l, double value) {
  if (isnan(value)) return nan_bits(l);
  uint64_t sign = signbit(value) ? (uint64_t)1 << (l->mantissa + l->exponent) : 0;
  double magnitude = fabs(value);
  if (magnitude == 0) return l->flavour == UNSIGNED_0 ? 0 : sign;
  uint64_t bits;
  if (isinf(magnitude)) {
    bits = beyond(l);
  } else {
    int exponent;
    frexp(magnitude, &exponent); /* magnitude = f * 2^exponent, f in [0.5, 1) */
    int least = 1 - l->bias;     /* of the normal numbers */
    int power = exponent - 1 < least ? least : exponent - 1;
    /* In units of the last place; nearbyint rounds to even, and a carry runs into the exponent by itself. */
    double units = nearbyint(ldexp(magnitude, (int)l->mantissa - power));
    bits = (uint64_t)units + ((uint64_t)(power - least) << l->mantissa);
    if (bits > beyond(l)) bits = beyond(l);
  }
  if (bits >= beyond(l) && l->flavour != IEEE) return nan_bits(l);
  return sign | bits;
}

static double widen(const layout *l, uint64_t bits) {
  uint64_t magnitude = bits & ones(l->mantissa + l->exponent);
  bool negative = bits >> (l->mantissa + l->exponent) & 1;
  if (l->flavour == UNSIGNED_0 && negative && !magnitude) return (double)NAN;
  if (magnitude >= beyond(l)) {
    if (l->flavour != IEEE || magnitude > beyond(l)) return (double)NAN;
    return negative ? -HUGE_VAL : HUGE_VAL;
  }
  uint64_t exponent = magnitude >> l->mantissa, mantissa = magnitude & ones(l->mantissa);
  int power = (exponent ? (int)exponent : 1) - l->bias - (int)l->mantissa;
  double value = ldexp((double)(exponent ? mantissa | (uint64_t)1 << l->mantissa : mantissa), power);
  return negative ? -value : value;
}

bool weft_mlir_float_round(const weft_mlir_type *type, double value, uint64_t *bits) {
  if (strcmp(type->name, "f64") == 0) {
    memcpy(bits, &value, sizeof value);
    return true;
  }
  if (strcmp(type->name, "f32") == 0) {
    float single = (float)value;
    uint32_t word;
    memcpy(&word, &single, sizeof word);
    *bits = word;
    return true;
  }
  const layout *l = layout_of(type);
  if (l) *bits = narrow(l, value);
  return l != NULL;
}

double weft_mlir_float_value(const weft_mlir_type *type, uint64_t bits) {
  if (strcmp(type->name, "f64") == 0) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  if (strcmp(type->name, "f32") == 0) {
    float value;
    uint32_t word = (uint32_t)bits;
    memcpy(&value, &word, sizeof value);
    return (double)value;
  }
  const layout *l = layout_of(type);
  return l ? widen(l, bits) : (double)NAN;
}
