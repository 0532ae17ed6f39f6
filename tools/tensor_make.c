/* weft tensor make: a file with every dataset a program reads.
 *
 * A value depends on the seed, the dataset's name and the element's place in the whole dataset only, so that a program
 * and every way of sharding it get the same file. */
#include "pipeline.h"
#include "tensor_commands.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A dataset that the program reads, once for all tensors that are blocks of it. */
typedef struct dataset {
  const char *name;
  const weft_tensor *tensor; /* the first of them */
  uint32_t rank;
  uint64_t extents[WEFT_MAX_RANK];
  uint64_t rows, cols;
  bool has_range;
  weft_range range;
} dataset;

typedef struct make {
  const weft_program *program;
  uint64_t seed;
  dataset *datasets;
  uint64_t count, capacity;
  weft_arena *arena;
  weft_tensor_writer *out;
  const dataset *current;
  void *buffer; /* WEFT_TENSOR_PIECE elements */
  weft_diag *diag;
} make;

/* ---- which datasets -------------------------------------------------------------------------------------------------
 */

static const char *dataset_name(const weft_tensor *tensor) {
  return tensor->has_shard ? tensor->shard.of : tensor->name;
}

/* Filled by a link, in the program of one chip. */
static bool is_received(const weft_program *program, uint32_t tensor) {
  for (uint64_t l = 0; l < program->link_count; l++)
    for (uint64_t i = 0; i < program->links[l].receive_count; i++)
      if (program->links[l].receives[i] == tensor) return true;
  return false;
}

static bool is_read(const weft_program *program, const weft_tensor *tensor) {
  if (tensor->role == WEFT_ROLE_INPUT) return !is_received(program, tensor->id);
  return tensor->role == WEFT_ROLE_PARAM || tensor->role == WEFT_ROLE_STATE;
}

static dataset *find(const make *m, const char *name) {
  for (uint64_t i = 0; i < m->count; i++)
    if (strcmp(m->datasets[i].name, name) == 0) return &m->datasets[i];
  return NULL;
}

static weft_status describe(const make *m, const weft_tensor *tensor, dataset *d) {
  *d =
      (dataset){.name = dataset_name(tensor), .tensor = tensor, .has_range = tensor->has_range, .range = tensor->range};
  d->rows = tensor->has_shard ? tensor->shard.rows : tensor->elems.rows;
  d->cols = tensor->has_shard ? tensor->shard.cols : tensor->elems.cols;
  d->rank = 2;
  d->extents[0] = d->rows;
  d->extents[1] = d->cols;
  if (!tensor->shape) return WEFT_OK;
  if (tensor->shape_count > WEFT_MAX_RANK)
    return weft_error(m->diag, WEFT_INVALID, "fold some dimensions",
                      "tensor `%s` has %" PRIu64 " dimensions, of which files hold %d", tensor->name,
                      tensor->shape_count, WEFT_MAX_RANK);
  d->rank = (uint32_t)tensor->shape_count;
  memcpy(d->extents, tensor->shape, tensor->shape_count * sizeof *d->extents);
  return WEFT_OK;
}

static bool same_dataset(const dataset *a, const dataset *b) {
  return a->tensor->dtype == b->tensor->dtype && a->rank == b->rank && a->rows == b->rows && a->cols == b->cols &&
         memcmp(a->extents, b->extents, sizeof a->extents) == 0;
}

static weft_status take_tensor(make *m, const weft_tensor *tensor) {
  dataset d;
  weft_status status = describe(m, tensor, &d);
  if (status != WEFT_OK) return status;
  dataset *known = find(m, d.name);
  if (known) {
    if (!same_dataset(known, &d))
      return weft_error(m->diag, WEFT_INVALID, "blocks of one dataset agree in its type and shape",
                        "tensors `%s` and `%s` describe dataset `%s` differently", known->tensor->name, tensor->name,
                        d.name);
    if (known->tensor->init.kind == WEFT_INIT_EXTERNAL) known->tensor = tensor;
    return WEFT_OK;
  }
  if (!weft_arena_grow(m->arena, &m->datasets, m->count, &m->capacity, sizeof d)) return weft_error_memory(m->diag);
  m->datasets[m->count++] = d;
  return WEFT_OK;
}

/* The bound of a gather is the range of the index it reads, where the index declares none itself. */
static void take_bounds(make *m) {
  const weft_program *program = m->program;
  for (uint64_t s = 0; s < program->stage_count; s++) {
    const weft_stage *stage = &program->stages[s];
    const weft_indirect_tile *indirect = stage->kind == WEFT_STAGE_LOAD    ? stage->load.pattern.origin.indirect
                                         : stage->kind == WEFT_STAGE_STORE ? stage->store.pattern.origin.indirect
                                                                           : NULL;
    for (uint64_t l = 0; indirect && l < program->stage_count; l++) {
      const weft_stage *loader = &program->stages[l];
      for (uint64_t o = 0; loader->kind == WEFT_STAGE_LOAD && o < loader->out_count; o++) {
        dataset *d =
            loader->outs[o] == indirect->index ? find(m, dataset_name(&program->tensors[loader->load.tensor])) : NULL;
        if (!d || d->has_range) continue;
        d->has_range = true;
        d->range = (weft_range){(int64_t)indirect->bound.first, (int64_t)indirect->bound.second};
      }
    }
  }
}

static weft_status collect(make *m) {
  weft_status status = WEFT_OK;
  for (uint64_t i = 0; i < m->program->tensor_count && status == WEFT_OK; i++)
    if (is_read(m->program, &m->program->tensors[i])) status = take_tensor(m, &m->program->tensors[i]);
  if (status == WEFT_OK) take_bounds(m);
  return status;
}

/* ---- values ---------------------------------------------------------------------------------------------------------
 */

/* Number `position` of the sequence that belongs to a dataset. */
static uint64_t random_at(const make *m, const dataset *d, uint64_t position) {
  uint64_t state = m->seed;
  state = weft_hash_bytes(weft_random_next(&state), d->name, strlen(d->name));
  state += position * UINT64_C(0x9e3779b97f4a7c15);
  return weft_random_next(&state);
}

static int64_t integer_within(uint64_t random, weft_range range) {
  uint64_t span = (uint64_t)range.high - (uint64_t)range.low + 1; /* 0: all 64 bits */
  uint64_t offset = span ? (uint64_t)((unsigned __int128)random * span >> 64) : random;
  return (int64_t)((uint64_t)range.low + offset);
}

/* What integers are drawn from: the declared range, or a byte's. */
static weft_range integer_range(const dataset *d) {
  weft_format dtype = d->tensor->dtype;
  if (!d->has_range) return (weft_range){-128, 127};
  if (weft_format_is_float(dtype)) return d->range;
  int64_t least = weft_format_min(dtype), greatest = weft_format_max(dtype);
  return (weft_range){d->range.low > least ? d->range.low : least, d->range.high < greatest ? d->range.high : greatest};
}

static bool store_random(const make *m, const dataset *d, uint64_t position, uint64_t index) {
  uint64_t random = random_at(m, d, position);
  weft_format dtype = d->tensor->dtype;
  weft_range range = integer_range(d);
  if (!weft_format_is_float(dtype))
    return range.low <= range.high && weft_store_i64(dtype, m->buffer, index, integer_within(random, range));
  float value = d->has_range ? (float)integer_within(random, range) : (float)(random >> 40) * 0x1p-23f - 1.0f;
  weft_store_f32(dtype, m->buffer, index, value);
  return true;
}

/* The trip that takes its count from this element, or NULL. */
static const weft_trip *trip_of(const make *m, const dataset *d, uint64_t position) {
  for (uint64_t i = 0; i < m->program->trip_count; i++) {
    const weft_trip *trip = &m->program->trips[i];
    const weft_tensor *tensor = trip->tensor < m->program->tensor_count ? &m->program->tensors[trip->tensor] : NULL;
    if (!tensor || strcmp(dataset_name(tensor), d->name) != 0 || tensor->elems.cols == 0) continue;
    uint64_t row = trip->elem / tensor->elems.cols, col = trip->elem % tensor->elems.cols;
    if (tensor->has_shard) row += tensor->shard.row0, col += tensor->shard.col0;
    if (row * d->cols + col == position) return trip;
  }
  return NULL;
}

static bool store_element(const make *m, const dataset *d, uint64_t position, uint64_t index) {
  const weft_init *init = &d->tensor->init;
  if (init->kind != WEFT_INIT_EXTERNAL) return weft_init_store(init, position, d->tensor->dtype, m->buffer, index);
  const weft_trip *trip = m->program->trip_count ? trip_of(m, d, position) : NULL;
  if (!trip) return store_random(m, d, position, index);
  dataset admitted = *d;
  admitted.has_range = true;
  admitted.range = trip->admit;
  return store_random(m, &admitted, position, index);
}

static weft_status write_piece(void *context, weft_tensor_block b) {
  const make *m = context;
  const dataset *d = m->current;
  for (uint64_t i = 0; i < b.rows * b.cols; i++) {
    /* The plane of a shape is cut differently from rows x cols, but its elements have the same order. */
    uint64_t position = b.row0 * d->extents[d->rank ? d->rank - 1 : 0] + b.col0 + i;
    if (d->rank == 0) position = 0;
    if (!store_element(m, d, position, i))
      return weft_error(m->diag, WEFT_INVALID, "check the tensor's fill and range",
                        "tensor `%s`: its fill or range gives no %s for element %" PRIu64, d->tensor->name,
                        weft_format_name(d->tensor->dtype), position);
  }
  return weft_tensor_writer_write(m->out, d->name, b.row0, b.rows, b.col0, b.cols, m->buffer, b.cols, m->diag);
}

static weft_status write_all(make *m) {
  weft_status status = WEFT_OK;
  for (uint64_t i = 0; i < m->count && status == WEFT_OK; i++) {
    const dataset *d = &m->datasets[i];
    status = weft_tensor_writer_declare(m->out, d->name, d->tensor->dtype, d->rank, d->extents,
                                        weft_tensor_role_name(d->tensor->role), m->diag);
  }
  for (uint64_t i = 0; i < m->count && status == WEFT_OK; i++) {
    m->current = &m->datasets[i];
    weft_tensor_block whole = {0};
    weft_plane_extents(m->current->rank, m->current->extents, &whole.rows, &whole.cols);
    status = weft_tensor_pieces(whole, write_piece, m);
  }
  return status;
}

static weft_status make_file(const char *path, const char *out, uint64_t seed, weft_diag *diag) {
  weft_program *program = NULL;
  weft_status status = weft_tool_read(path, &program, diag);
  if (status != WEFT_OK) return status;
  make m = {.program = program, .seed = seed, .diag = diag, .arena = weft_arena_new()};
  m.buffer = malloc(WEFT_TENSOR_PIECE * sizeof(int64_t));
  status = m.arena && m.buffer ? collect(&m) : weft_error_memory(diag);
  if (status == WEFT_OK) status = weft_tensor_writer_create(out, &m.out, diag);
  if (status == WEFT_OK) {
    status = write_all(&m);
    if (status == WEFT_OK)
      status = weft_tensor_writer_commit(m.out, diag);
    else
      weft_tensor_writer_abandon(m.out);
  }
  free(m.buffer);
  weft_arena_free(m.arena);
  weft_program_free(program);
  return status;
}

int weft_tensor_make(int argc, char **argv) {
  const char *program = NULL, *out = NULL;
  uint64_t seed = 0;
  const weft_option options[] = {
      {.name = "program",
       .kind = WEFT_OPTION_TEXT,
       .target = &program,
       .argument = "FILE",
       .help = "the program whose tensors are made"},
      {.name = "seed", .kind = WEFT_OPTION_COUNT, .target = &seed, .help = "another seed gives other values (0)"},
      {.name = "output",
       .letter = 'o',
       .kind = WEFT_OPTION_TEXT,
       .target = &out,
       .argument = "FILE",
       .help = "the file to write"},
      {0}};
  const weft_usage usage = {
      .synopsis = "tensor make --program FILE --seed N -o IN.h5",
      .about = "Writes every dataset that a program reads: inputs, parameters, states, whole where they are sharded.\n"
               "Floats are uniform in [-1, 1), integers in the tensor's declared range, or -128 to 127 without one;\n"
               "counts of trips are within what they admit, and a declared fill gives its own values. The values\n"
               "depend on seed, dataset and element only: every way of sharding a program gives the same file.",
      .example = "weft new mlp --layers 784,256,10 --batch 32 -o digits.json\n"
                 "weft tensor make --program digits.json --seed 1 -o in.h5",
      .options = options};
  weft_arguments arguments;
  int exit_code;
  if (!weft_options_parse(&usage, argc, argv, &arguments, &exit_code)) return exit_code;
  if (!program) return weft_tool_misuse(&usage, "--program FILE is missing");
  if (!out) return weft_tool_misuse(&usage, "-o FILE is missing");
  weft_diag *diag = weft_diag_new();
  weft_status status = diag ? make_file(program, out, seed, diag) : WEFT_UNAVAILABLE;
  return weft_tool_finish(status, diag, &arguments);
}
