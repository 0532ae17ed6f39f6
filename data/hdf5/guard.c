/* HDF5's global state and its error stack. */
#include "internal.h"

#include <string.h>

weft_hdf5_guard weft_hdf5_enter(void) {
  weft_hdf5_guard guard = {0};
  H5Eget_auto2(H5E_DEFAULT, &guard.print, &guard.print_data);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  H5PLget_loading_state(&guard.plugins);
  H5PLset_loading_state(0);
  H5Eclear2(H5E_DEFAULT);
  return guard;
}

void weft_hdf5_leave(weft_hdf5_guard guard) {
  H5Eclear2(H5E_DEFAULT);
  H5PLset_loading_state(guard.plugins);
  H5Eset_auto2(H5E_DEFAULT, guard.print, guard.print_data);
}

static herr_t take_innermost(unsigned depth, const H5E_error2_t *error, void *context) {
  const char **message = context;
  if (depth == 0) *message = error->desc;
  return 0;
}

void weft_hdf5_innermost(weft_text *text) {
  const char *message = NULL;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &message);
  if (!message) return;
  const char *reason = strstr(message, "error message = '");
  if (reason) {
    /* A failed system call: its reason is the part that does not change from run to run. */
    reason += strlen("error message = '");
    weft_text_printf(text, "%.*s", (int)strcspn(reason, "'"), reason);
    return;
  }
  const char *time = strstr(message, "time = ");
  size_t length = time ? (size_t)(time - message) : strlen(message);
  while (length && strchr(" :,", message[length - 1])) length--;
  weft_text_append(text, message, length);
}

weft_status weft_hdf5_error(weft_diag *diag, weft_status status, const char *path, const char *tensor, const char *hint,
                            const char *format, ...) {
  weft_text text = {0};
  if (tensor) weft_text_printf(&text, "tensor `%s`: ", tensor);
  va_list arguments;
  va_start(arguments, format);
  weft_text_vprintf(&text, format, arguments);
  va_end(arguments);
  if (H5Eget_num(H5E_DEFAULT) > 0) {
    weft_text_puts(&text, ": ");
    weft_hdf5_innermost(&text);
  }
  weft_error_at(diag, status, (weft_place){.file = path}, hint, "%s", text.data ? text.data : format);
  weft_text_free(&text);
  H5Eclear2(H5E_DEFAULT);
  return status;
}

void weft_hdf5_put_shape(weft_text *text, weft_format dtype, uint32_t rank, const uint64_t *extents) {
  weft_text_printf(text, "%s [", weft_format_name(dtype));
  for (uint32_t i = 0; i < rank; i++) {
    if (i) weft_text_puts(text, ", ");
    weft_text_u64(text, extents[i]);
  }
  weft_text_puts(text, "]");
}
