#include "df_compile.h"

#include <dlfcn.h>
#include <unistd.h>

void *compile_module(world *w, weft_mlir_op *module, bool machines, weft_df_program *program) {
  char folder[] = "/tmp/weft-emit-XXXXXX", path[64], command[1024];
  weft_text text = {0};
  weft_emit_options options = {.machines = machines};
  if (weft_emit_c(w->context, module, "test.mlir", &options, &text, w->diag) != WEFT_OK)
    fail_msg("%s", world_message(w));
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/program.c", folder);
  assert_int_equal(weft_write_file(path, text.data, text.length, false, w->diag), WEFT_OK);
  snprintf(command, sizeof command,
           "cc -std=gnu17 %s -w -ffp-contract=off -shared -fPIC -I" WEFT_SOURCE_DIR
           "/include %s/program.c -o %s/program.so " WEFT_BINARY_DIR "/data/libweft_data.a " WEFT_BINARY_DIR
           "/base/libweft_base.a -fopenmp -lm -fmax-errors=3",
           machines ? "-O0" : "-O1", folder, folder);
  assert_int_equal(system(command), 0);
  snprintf(path, sizeof path, "%s/program.so", folder);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  const uint32_t *count = dlsym(library, "weft_df_entry_count");
  assert_non_null(count);
  *program = (weft_df_program){.entries = dlsym(library, "weft_df_entries"), .count = *count};
  assert_non_null(program->entries);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  weft_text_free(&text);
  return library;
}

void compiled_free(void *library) { dlclose(library); }
