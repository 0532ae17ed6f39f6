#include "internal.h"

weft_status weft_certify(const weft_program *program, weft_certificate *certificate, weft_diag *diag) {
  *certificate = (weft_certificate){0};
  return weft_program_validate(program, 1, NULL, diag);
}
