#include "weft/base.h"

int weft_status_exit_code(weft_status status) {
  switch (status) {
  case WEFT_OK: return 0;
  case WEFT_INVALID: return 1;
  case WEFT_USAGE: return 2;
  case WEFT_UNAVAILABLE: return 3;
  }
  return 3;
}
