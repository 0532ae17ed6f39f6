/* How alike two names are, for messages that say what was probably meant. */
#include "weft/base.h"

#include <string.h>

enum { LONGEST = 63 }; /* more of a name is not looked at */

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

uint32_t weft_edit_distance(const char *a, const char *b) {
  size_t a_length = strnlen(a, LONGEST), b_length = strnlen(b, LONGEST);
  uint32_t before[LONGEST + 1], last[LONGEST + 1], row[LONGEST + 1]; /* rows i - 2, i - 1, i of the table */
  memset(before, 0, sizeof before);
  for (size_t j = 0; j <= b_length; j++) last[j] = (uint32_t)j;
  for (size_t i = 1; i <= a_length; i++) {
    row[0] = (uint32_t)i;
    for (size_t j = 1; j <= b_length; j++) {
      row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = least(row[j], before[j - 2] + 1);
    }
    memcpy(before, last, sizeof before);
    memcpy(last, row, (b_length + 1) * sizeof row[0]);
  }
  return last[b_length];
}

bool weft_names_alike(const char *a, const char *b) {
  size_t longer = weft_max_u64(strnlen(a, LONGEST), strnlen(b, LONGEST));
  return weft_edit_distance(a, b) <= weft_max_u64(1, longer / 3);
}
