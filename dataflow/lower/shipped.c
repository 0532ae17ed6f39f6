/* Where the grammars and postconditions that come with weft lie. */
#include "weft/dataflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool weft_shipped_grammar(const char *name, char *path, size_t size) {
  const char *folders[] = {getenv("WEFT_GRAMMARS"), WEFT_GRAMMARS_SOURCE, WEFT_GRAMMARS_INSTALLED};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    if (!folders[i]) continue;
    int length = snprintf(path, size, "%s/%s", folders[i], name);
    if (length > 0 && (size_t)length < size && access(path, R_OK) == 0) return true;
  }
  return false;
}
