/* weft tensor slice and rename: files made from parts of another. */
#include "tensor_commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- copying --------------------------------------------------------------------------------------------------------
 */

typedef struct copy {
  weft_tensor_file *in;
  weft_tensor_writer *out;
  const weft_dataset_info *info;
  const char *new_name;
  uint64_t row0, col0; /* what becomes the first row and column */
  void *buffer;        /* WEFT_TENSOR_PIECE elements */
  weft_diag *diag;
} copy;

static weft_status copy_piece(void *context, weft_tensor_block b) {
  const copy *c = context;
  weft_status status = weft_tensor_file_read(c->in, c->info->name, c->info->dtype, b.row0, b.rows, b.col0, b.cols,
                                             c->buffer, b.cols, c->diag);
  if (status != WEFT_OK) return status;
  return weft_tensor_writer_write(c->out, c->new_name, b.row0 - c->row0, b.rows, b.col0 - c->col0, b.cols, c->buffer,
                                  b.cols, c->diag);
}

/* Copies elements begin..end of a dataset's first dimension; a scalar whole. */
static weft_status copy_part(copy *c, uint64_t begin, uint64_t end) {
  const weft_dataset_info *info = c->info;
  uint64_t extents[WEFT_MAX_RANK], rows, cols;
  memcpy(extents, info->extents, sizeof extents);
  weft_plane_extents(info->rank, info->extents, &rows, &cols);
  weft_tensor_block whole = {0, rows, 0, cols};
  if (info->rank) extents[0] = end - begin;
  if (info->rank == 1) {
    whole.col0 = begin;
    whole.cols = end - begin;
  } else if (info->rank > 1 && info->extents[0]) {
    whole.row0 = rows / info->extents[0] * begin;
    whole.rows = rows / info->extents[0] * (end - begin);
  }
  c->row0 = whole.row0;
  c->col0 = whole.col0;
  const char *role = *info->role ? info->role : NULL;
  weft_status status = weft_tensor_writer_declare(c->out, c->new_name, info->dtype, info->rank, extents, role, c->diag);
  return status == WEFT_OK ? weft_tensor_pieces(whole, copy_piece, c) : status;
}

static weft_status copy_whole(copy *c) { return copy_part(c, 0, c->info->rank ? c->info->extents[0] : 0); }

static void leave_out(const char *path, const weft_dataset_info *info, weft_diag *diag) {
  weft_diag_add(diag, WEFT_WARNING, (weft_place){.file = path}, NULL, "tensor `%s` is left out: it %s", info->name,
                info->unsupported);
}

/* Opens both files, calls `edit` and commits what it wrote. */
static weft_status with_files(const char *in, const char *out, weft_status (*edit)(copy *c, void *context),
                              void *context, weft_diag *diag) {
  copy c = {.diag = diag, .buffer = malloc(WEFT_TENSOR_PIECE * sizeof(int64_t))};
  weft_status status = c.buffer ? weft_tensor_file_open(in, &c.in, diag) : weft_error_memory(diag);
  if (status == WEFT_OK) status = weft_tensor_writer_create(out, &c.out, diag);
  if (status == WEFT_OK) status = edit(&c, context);
  if (status == WEFT_OK)
    status = weft_tensor_writer_commit(c.out, diag);
  else
    weft_tensor_writer_abandon(c.out);
  weft_tensor_file_close(c.in);
  free(c.buffer);
  return status;
}

/* ---- slice ----------------------------------------------------------------------------------------------------------
 */

typedef struct slices {
  const char *path;
  char **words; /* NAME RANGE NAME RANGE ... */
  int count;
  bool keep;
} slices;

/* One border of a range: `absent` when the text is empty. */
static bool parse_border(const char *text, size_t length, uint64_t absent, uint64_t *border) {
  *border = 0;
  for (size_t i = 0; i < length; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    if (weft_mul_overflow(*border, 10, border) || weft_add_overflow(*border, (uint64_t)(text[i] - '0'), border))
      return false;
  }
  if (length == 0) *border = absent;
  return true;
}

static bool parse_range(const char *text, uint64_t extent, uint64_t *begin, uint64_t *end) {
  const char *colon = strchr(text, ':');
  return colon && parse_border(text, (size_t)(colon - text), 0, begin) &&
         parse_border(colon + 1, strlen(colon + 1), extent, end) && *begin <= *end && *end <= extent;
}

static weft_status slice_one(copy *c, const char *path, const char *name, const char *range) {
  uint64_t begin, end;
  c->new_name = name;
  c->info = weft_tensor_file_find(c->in, name);
  if (!c->info || c->info->unsupported) /* reading nothing says what is wrong */
    return weft_tensor_file_read(c->in, name, WEFT_FP32, 0, 0, 0, 0, NULL, 0, c->diag);
  if (c->info->rank == 0)
    return weft_error_at(c->diag, WEFT_INVALID, (weft_place){.file = path}, "leave it out, or keep it with --keep",
                         "tensor `%s`: a scalar has no rows", name);
  if (!parse_range(range, c->info->extents[0], &begin, &end))
    return weft_error_at(c->diag, WEFT_INVALID, (weft_place){.file = path},
                         "a range is BEGIN:END, the end not included; either may be left out",
                         "tensor `%s`: `%s` is no range of its %" PRIu64 " rows", name, range, c->info->extents[0]);
  return copy_part(c, begin, end);
}

static bool is_sliced(const slices *s, const char *name) {
  for (int i = 0; i < s->count; i += 2)
    if (strcmp(s->words[i], name) == 0) return true;
  return false;
}

static weft_status slice(copy *c, void *context) {
  const slices *s = context;
  weft_status status = WEFT_OK;
  for (int i = 0; i < s->count && status == WEFT_OK; i += 2)
    status = slice_one(c, s->path, s->words[i], s->words[i + 1]);
  for (uint64_t i = 0; s->keep && i < weft_tensor_file_count(c->in) && status == WEFT_OK; i++) {
    c->info = weft_tensor_file_info(c->in, i);
    c->new_name = c->info->name;
    if (is_sliced(s, c->info->name)) continue;
    if (c->info->unsupported)
      leave_out(s->path, c->info, c->diag);
    else
      status = copy_whole(c);
  }
  return status;
}

int weft_tensor_slice(int argc, char **argv) {
  const char *out = NULL;
  bool keep = false;
  const weft_option options[] = {
      {.name = "output",
       .letter = 'o',
       .kind = WEFT_OPTION_TEXT,
       .target = &out,
       .argument = "FILE",
       .help = "the file to write"},
      {.name = "keep", .kind = WEFT_OPTION_FLAG, .target = &keep, .help = "copy the other datasets too"},
      {0}};
  const weft_usage usage = {
      .synopsis = "tensor slice IN.h5 NAME BEGIN:END [NAME BEGIN:END ...] -o OUT.h5 [--keep]",
      .about = "Cuts rows BEGIN to END, the end not included, out of datasets: elements of their first dimension.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json && weft tensor make --program digits.json "
                 "--seed 1 -o in.h5\n"
                 "weft tensor slice in.h5 x 0:8 w2 :128 -o part.h5",
      .options = options,
      .least = 3,
      .most = -1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  if (!out) return weft_tool_misuse(&usage, "-o FILE is missing");
  if (arguments.count % 2 == 0)
    return weft_tool_misuse(&usage, "`%s` has no range", arguments.items[arguments.count - 1]);
  slices s = {arguments.items[0], arguments.items + 1, arguments.count - 1, keep};
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? with_files(arguments.items[0], out, slice, &s, diag) : WEFT_UNAVAILABLE;
  return weft_tool_finish(status, diag, &arguments);
}

/* ---- rename ---------------------------------------------------------------------------------------------------------
 */

typedef struct renames {
  const char *path;
  char **words; /* OLD=NEW */
  int count;
  bool only;
} renames;

/* The new name that a word gives `name`, or NULL. */
static const char *renamed(const char *word, const char *name) {
  size_t length = strlen(name);
  return strncmp(word, name, length) == 0 && word[length] == '=' ? word + length + 1 : NULL;
}

static weft_status check_renames(const copy *c, const renames *r) {
  for (int i = 0; i < r->count; i++) {
    char *equals = strchr(r->words[i], '=');
    if (!equals || !equals[1])
      return weft_error(c->diag, WEFT_USAGE, "write OLD=NEW", "`%s` does not say which name becomes which",
                        r->words[i]);
    bool found = false;
    for (uint64_t d = 0; d < weft_tensor_file_count(c->in) && !found; d++)
      found = renamed(r->words[i], weft_tensor_file_info(c->in, d)->name) != NULL;
    if (found) continue;
    *equals = 0;
    weft_status status = weft_tensor_file_read(c->in, r->words[i], WEFT_FP32, 0, 0, 0, 0, NULL, 0, c->diag);
    *equals = '=';
    return status;
  }
  return WEFT_OK;
}

static weft_status rename_all(copy *c, void *context) {
  const renames *r = context;
  weft_status status = check_renames(c, r);
  for (uint64_t d = 0; d < weft_tensor_file_count(c->in) && status == WEFT_OK; d++) {
    c->info = weft_tensor_file_info(c->in, d);
    c->new_name = NULL;
    for (int i = 0; i < r->count && !c->new_name; i++) c->new_name = renamed(r->words[i], c->info->name);
    if (!c->new_name && r->only) continue;
    if (!c->new_name) c->new_name = c->info->name;
    if (c->info->unsupported)
      leave_out(r->path, c->info, c->diag);
    else
      status = copy_whole(c);
  }
  return status;
}

int weft_tensor_rename(int argc, char **argv) {
  const char *out = NULL;
  bool only = false;
  const weft_option options[] = {
      {.name = "output",
       .letter = 'o',
       .kind = WEFT_OPTION_TEXT,
       .target = &out,
       .argument = "FILE",
       .help = "the file to write"},
      {.name = "only", .kind = WEFT_OPTION_FLAG, .target = &only, .help = "leave out the datasets that are not named"},
      {0}};
  const weft_usage usage = {.synopsis = "tensor rename IN.h5 OLD=NEW [OLD=NEW ...] -o OUT.h5 [--only]",
                            .about = "Copies a tensor file, giving datasets other names, so that a program finds them.",
                            .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json && weft tensor make "
                                       "--program digits.json --seed 1 -o in.h5\n"
                                       "weft tensor rename in.h5 x=x_test -o inputs.h5",
                            .options = options,
                            .least = 2,
                            .most = -1};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  if (!out) return weft_tool_misuse(&usage, "-o FILE is missing");
  renames r = {arguments.items[0], arguments.items + 1, arguments.count - 1, only};
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? with_files(arguments.items[0], out, rename_all, &r, diag) : WEFT_UNAVAILABLE;
  return weft_tool_finish(status, diag, &arguments);
}
