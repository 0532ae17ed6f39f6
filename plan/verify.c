/* verify
 * requires     a Scheduled program
 * establishes  the certificate: the program is marked verified
 * breaks       nothing
 * source       docs/certificate.md */
#include "internal.h"

weft_status weft_pass_verify(weft_program *program, const weft_target *target, const weft_options *options,
                             weft_diag *diag) {
  (void)target;
  (void)options;
  weft_certificate certificate;
  weft_status status = weft_certify(program, &certificate, diag);
  if (!status) program->verified = true;
  return status;
}
