/* Element formats as HDF5 types. Fp16 is the IEEE type that h5py writes; Bf16 and Fp8 are unsigned bits that the
 * attribute dtype gives their meaning, or, as other writers have them, floats with the same fields. */
#include "internal.h"

/* A float type is known by its fields: bytes, sign bit, exponent and fraction places and widths, exponent bias. */
static const struct {
  weft_format format;
  size_t bytes, sign, exponent, exponent_bits, fraction_bits, bias;
} floats[] = {
    {WEFT_FP32, 4, 31, 23, 8, 23, 127},
    {WEFT_FP16, 2, 15, 10, 5, 10, 15},
    {WEFT_BF16, 2, 15, 7, 8, 7, 127},
    {WEFT_FP8, 1, 7, 3, 4, 3, 7},
};

static const char *format_of_float(hid_t type, weft_format *format) {
  size_t sign, exponent, exponent_bits, fraction, fraction_bits;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_bits, &fraction, &fraction_bits) < 0)
    return "holds unreadable floats";
  bool implied = H5Tget_norm(type) == H5T_NORM_IMPLIED;
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
    bool same = implied && H5Tget_size(type) == floats[i].bytes && sign == floats[i].sign &&
                exponent == floats[i].exponent && exponent_bits == floats[i].exponent_bits && fraction == 0 &&
                fraction_bits == floats[i].fraction_bits && H5Tget_ebias(type) == floats[i].bias &&
                H5Tget_offset(type) == 0 && H5Tget_precision(type) == 8 * floats[i].bytes;
    if (!same) continue;
    *format = floats[i].format;
    return NULL;
  }
  return H5Tget_size(type) == 8 ? "holds 64-bit floats" : "holds floats of an unknown layout";
}

static const char *format_of_integer(hid_t type, const char *attribute, weft_format *format) {
  size_t bytes = H5Tget_size(type);
  if (H5Tget_precision(type) != 8 * bytes || H5Tget_offset(type) != 0) return "holds integers with unused bits";
  if (H5Tget_sign(type) == H5T_SGN_NONE) {
    weft_format named = weft_format_by_name(attribute);
    if ((named != WEFT_BF16 && named != WEFT_FP8) || weft_format_bytes(named) != bytes)
      return "holds unsigned integers without an attribute dtype of Bf16 (16 bits) or Fp8 (8 bits)";
    *format = named;
    return NULL;
  }
  switch (bytes) {
  case 1: *format = WEFT_INT8; return NULL;
  case 2: *format = WEFT_INT16; return NULL;
  case 4: *format = WEFT_INT32; return NULL;
  case 8: *format = WEFT_INT64; return NULL;
  default: return "holds integers of an unknown width";
  }
}

static const char *class_in_words(H5T_class_t type_class) {
  switch (type_class) {
  case H5T_STRING: return "holds text";
  case H5T_ENUM: return "holds enumerations (h5py writes booleans so)";
  case H5T_COMPOUND: return "holds compounds (h5py writes complex numbers so)";
  case H5T_REFERENCE: return "holds references";
  case H5T_VLEN: return "holds variable-length sequences";
  case H5T_ARRAY: return "holds arrays as elements";
  case H5T_BITFIELD: return "holds bit fields";
  case H5T_OPAQUE: return "holds opaque bytes";
  default: return "holds elements of an unknown type";
  }
}

const char *weft_hdf5_format_of_type(hid_t type, const char *attribute, weft_format *format, bool *swapped) {
  H5T_class_t type_class = H5Tget_class(type);
  if (type_class != H5T_INTEGER && type_class != H5T_FLOAT) return class_in_words(type_class);
  H5T_order_t order = H5Tget_order(type);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return "holds numbers in neither byte order";
  *swapped = order == H5T_ORDER_BE && H5Tget_size(type) > 1;
  return type_class == H5T_FLOAT ? format_of_float(type, format) : format_of_integer(type, attribute, format);
}

static hid_t half_type(void) {
  hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  bool ok = type >= 0 && H5Tset_fields(type, 15, 10, 5, 0, 10) >= 0 && H5Tset_size(type, 2) >= 0 &&
            H5Tset_ebias(type, 15) >= 0;
  if (ok) return type;
  if (type >= 0) H5Tclose(type);
  return H5I_INVALID_HID;
}

hid_t weft_hdf5_type_of_format(weft_format format) {
  switch (format) {
  case WEFT_INT8: return H5Tcopy(H5T_STD_I8LE);
  case WEFT_INT16: return H5Tcopy(H5T_STD_I16LE);
  case WEFT_INT32: return H5Tcopy(H5T_STD_I32LE);
  case WEFT_INT64: return H5Tcopy(H5T_STD_I64LE);
  case WEFT_FP8: return H5Tcopy(H5T_STD_U8LE);
  case WEFT_BF16: return H5Tcopy(H5T_STD_U16LE);
  case WEFT_FP16: return half_type();
  case WEFT_FP32: return H5Tcopy(H5T_IEEE_F32LE);
  default: return H5I_INVALID_HID;
  }
}
