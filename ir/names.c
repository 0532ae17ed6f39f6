/* Dump names of enums, and the formats accumulators go with. */
#include "weft/ir.h"

#define NAME_ROW(id, name) name,
#define NAME_FUNCTION(type, rows)                                                                                      \
  const char *type##_name(type value) {                                                                                \
    static const char *const names[] = {rows(NAME_ROW)};                                                               \
    return value < sizeof names / sizeof *names ? names[value] : "?";                                                  \
  }

NAME_FUNCTION(weft_handshake_kind, WEFT_HANDSHAKE_KINDS)
NAME_FUNCTION(weft_interconnect, WEFT_INTERCONNECTS)
NAME_FUNCTION(weft_tensor_role, WEFT_TENSOR_ROLES)
NAME_FUNCTION(weft_acc_policy, WEFT_ACC_POLICIES)
NAME_FUNCTION(weft_pool, WEFT_POOLS)
NAME_FUNCTION(weft_phase, WEFT_PHASES)

weft_format weft_acc_format(weft_acc_policy acc) {
  switch (acc) {
  case WEFT_ACC_I32: return WEFT_INT32;
  case WEFT_ACC_I64: return WEFT_INT64;
  default: return WEFT_FP32;
  }
}

weft_acc_policy weft_acc_for_result(weft_format format) {
  switch (format) {
  case WEFT_INT32: return WEFT_ACC_I32;
  case WEFT_INT8:
  case WEFT_INT16:
  case WEFT_INT64: return WEFT_ACC_I64;
  default: return WEFT_ACC_F32;
  }
}
