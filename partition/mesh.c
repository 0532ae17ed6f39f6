/* Meshes: named axes, chips numbered row-major. */
#include "internal.h"

#include <ctype.h>
#include <string.h>

/* One "name=extent" of a mesh, between `text` and `end`. */
static weft_status parse_axis(const char *text, const char *end, weft_mesh *mesh, weft_diag *diag) {
  const char *hint = "write a mesh as x=2,y=4: axis names and the chips along each";
  const char *equals = memchr(text, '=', (size_t)(end - text));
  int shown = (int)weft_min_u64((uint64_t)(end - text), 60);
  if (!equals || equals == text || equals + 1 == end)
    return weft_error(diag, WEFT_USAGE, hint, "mesh axis '%.*s' is not NAME=CHIPS", shown, text);
  size_t length = (size_t)(equals - text);
  if (length >= sizeof mesh->names[0])
    return weft_error(diag, WEFT_USAGE, "use at most 31 letters", "mesh axis name '%.*s' is too long", shown, text);
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (!(isalpha(c) || c == '_' || (i > 0 && isdigit(c))))
      return weft_error(diag, WEFT_USAGE, "use letters, digits and _, a letter first",
                        "mesh axis name '%.*s' is malformed", (int)length, text);
  }
  uint64_t extent = 0;
  for (const char *c = equals + 1; c < end; c++) {
    if (!isdigit((unsigned char)*c))
      return weft_error(diag, WEFT_USAGE, hint, "mesh axis '%.*s' has no number of chips", shown, text);
    extent = weft_min_u64(extent * 10 + (uint64_t)(*c - '0'), (uint64_t)WEFT_MAX_CHIPS + 1);
  }
  if (extent == 0 || extent > WEFT_MAX_CHIPS)
    return weft_error(diag, WEFT_USAGE, hint, "mesh axis '%.*s' must have 1 to %d chips", shown, text, WEFT_MAX_CHIPS);
  if (weft_mesh_axis(mesh, text, length) != WEFT_NO_AXIS)
    return weft_error(diag, WEFT_USAGE, "give each axis a name of its own", "mesh axis '%.*s' is named twice",
                      (int)length, text);
  if (mesh->axis_count == WEFT_MAX_AXES)
    return weft_error(diag, WEFT_USAGE, "merge axes", "a mesh has at most %d axes", WEFT_MAX_AXES);
  memcpy(mesh->names[mesh->axis_count], text, length);
  mesh->names[mesh->axis_count][length] = 0;
  mesh->extents[mesh->axis_count++] = (uint32_t)extent;
  return WEFT_OK;
}

weft_status weft_mesh_parse(const char *text, weft_mesh *mesh, weft_diag *diag) {
  *mesh = (weft_mesh){0};
  uint64_t chips = 1;
  for (const char *at = text;;) {
    const char *end = at + strcspn(at, ",");
    weft_status status = parse_axis(at, end, mesh, diag);
    if (status != WEFT_OK) return status;
    chips *= mesh->extents[mesh->axis_count - 1];
    if (chips > WEFT_MAX_CHIPS)
      return weft_error(diag, WEFT_USAGE, "use fewer chips", "mesh '%.80s' has more than %d chips", text,
                        WEFT_MAX_CHIPS);
    if (!*end) return WEFT_OK;
    at = end + 1;
  }
}

uint32_t weft_mesh_chips(const weft_mesh *mesh) {
  uint64_t chips = 1;
  for (uint32_t a = 0; a < mesh->axis_count; a++) chips = weft_min_u64(chips * mesh->extents[a], UINT32_MAX);
  return (uint32_t)chips;
}

uint32_t weft_mesh_coordinate(const weft_mesh *mesh, uint32_t chip, uint32_t axis) {
  for (uint32_t a = mesh->axis_count; a-- > axis + 1;) chip /= mesh->extents[a];
  return chip % mesh->extents[axis];
}

uint32_t weft_mesh_axis(const weft_mesh *mesh, const char *name, size_t length) {
  for (uint32_t a = 0; a < mesh->axis_count; a++)
    if (strlen(mesh->names[a]) == length && memcmp(mesh->names[a], name, length) == 0) return a;
  return WEFT_NO_AXIS;
}

const char *weft_mesh_text(const weft_mesh *mesh, weft_arena *arena) {
  const char *text = "";
  for (uint32_t a = 0; text && a < mesh->axis_count; a++)
    text = weft_arena_printf(arena, "%s%s%s=%u", text, a ? "," : "", mesh->names[a], mesh->extents[a]);
  return text ? text : "";
}
