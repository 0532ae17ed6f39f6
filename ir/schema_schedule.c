/* The shapes of placement, memory and schedule. */
#include "schema_private.h"

#define u8 weft_schema_u8
#define u16 weft_schema_u16
#define u32 weft_schema_u32
#define u64 weft_schema_u64

/* ---- placement ---- */

static const shape site_list = LIST(weft_schema_site, weft_site);

static const shape_case engine_cases[] = {
    CASE("Movement", u8, .offset = offsetof(weft_engine, movement)),
    UNIT("Compute"),
};
static const shape engine = PLAIN_CHOICE("an engine", engine_cases, weft_engine, compute);
static const shape optional_noc = FLAGGED(u8, weft_engine_slot, has_noc, noc);
static const field slot_fields[] = {
    FIELD("site", weft_engine_slot, site, weft_schema_site),
    FIELD("engine", weft_engine_slot, engine, engine),
    NESTED("noc", optional_noc, OPTIONAL),
};
static const shape slot = PLAIN_STRUCT("an engine slot", slot_fields);
static const shape slot_list = LIST(slot, weft_engine_slot);

static const field rect_fields[] = {
    FIELD("x0", weft_rect, x0, u16),
    FIELD("y0", weft_rect, y0, u16),
    FIELD("x1", weft_rect, x1, u16),
    FIELD("y1", weft_rect, y1, u16),
};
static const shape rect = PLAIN_STRUCT("a rectangle", rect_fields);
static const shape_case direction_cases[] = {WEFT_DIRECTIONS(SCHEMA_CASE)};
static const shape direction = NAMES("a direction", direction_cases, weft_direction);
static const shape_case operand_cases[] = {WEFT_OPERANDS(SCHEMA_CASE)};
const shape weft_schema_operand = NAMES("an operand", operand_cases, weft_operand);
static const field group_fields[] = {
    FIELD("id", weft_group, id, u32),
    FIELD("rect", weft_group, rect, rect),
    FIELD("sender", weft_group, sender, weft_schema_site),
    FIELD("direction", weft_group, direction, direction),
    FIELD("operand", weft_group, operand, weft_schema_operand),
    FIELD("noc", weft_group, noc, u8),
};
static const shape group = PLAIN_STRUCT("a group", group_fields);
static const shape group_list = LIST(group, weft_group);

static const field site_items_fields[] = {
    FIELD("0", weft_site_items, site, weft_schema_site),
    FIELD("1", weft_site_items, items, weft_schema_u32_list),
};
static const shape site_items = {.kind = SHAPE_TUPLE,
                                 .noun = "a site and its items",
                                 .fields = site_items_fields,
                                 .count = COUNT_OF(site_items_fields)};
static const shape site_items_list = LIST(site_items, weft_site_items);

static const field mesh_fields[] = {
    FIELD("cols", weft_placement, mesh_cols, u64),
    FIELD("rows", weft_placement, mesh_rows, u64),
};
static const shape mesh = PLAIN_STRUCT("a mesh", mesh_fields);
static const field placement_fields[] = {
    NESTED("mesh", mesh),
    FIELD("site_of", weft_placement, site_of, site_list),
    FIELD("engine_of", weft_placement, engine_of, slot_list),
    FIELD("groups", weft_placement, groups, group_list),
    FIELD("items_of_site", weft_placement, items_of_site, site_items_list),
};
static const shape placement = STRUCT("a placement", placement_fields);
const shape weft_schema_placement = POINTER(placement, weft_placement);

/* ---- memory ---- */

static const shape_case mem_space_cases[] = {WEFT_MEM_SPACES(SCHEMA_CASE)};
const shape weft_schema_mem_space = NAMES("a memory space", mem_space_cases, weft_mem_space);
static const field buffer_at_fields[] = {
    FIELD("site", weft_buffer_at, site, weft_schema_site),
    FIELD("space", weft_buffer_at, space, weft_schema_mem_space),
    FIELD("offset_bytes", weft_buffer_at, offset_bytes, u32),
    FIELD("bytes", weft_buffer_at, bytes, u32),
};
static const shape buffer_at = PLAIN_STRUCT("a buffer's place", buffer_at_fields);
static const shape buffer_at_list = LIST(buffer_at, weft_buffer_at);
static const field memory_fields[] = {FIELD("buffer_at", weft_memory_map, buffer_at, buffer_at_list)};
static const shape memory = STRUCT("a memory map", memory_fields);
const shape weft_schema_memory_map = POINTER(memory, weft_memory_map);

/* ---- schedule ---- */

static const shape op_list;

static const field page_fields[] = {
    FIELD("buf", weft_op, page.buf, u32),
    FIELD("pages", weft_op, page.pages, u64),
};
static const shape page = PLAIN_STRUCT("a buffer and its pages", page_fields);

#define BLOCK_FIELDS                                                                                                   \
  FIELD("block_h", weft_op, tiles.block_h, u64), FIELD("block_w", weft_op, tiles.block_w, u64),                        \
      FIELD("stride_w", weft_op, tiles.stride_w, u64), FIELD("stride_h", weft_op, tiles.stride_h, u64)
static const field read_tiles_fields[] = {
    FIELD("tensor", weft_op, tiles.tensor, u32),
    FIELD("at", weft_op, tiles.at, weft_schema_tile_addr),
    BLOCK_FIELDS,
    FIELD("into", weft_op, tiles.buf, u32),
};
static const shape read_tiles = STRUCT("a ReadTiles", read_tiles_fields);
static const field write_tiles_fields[] = {
    FIELD("from", weft_op, tiles.buf, u32),
    FIELD("tensor", weft_op, tiles.tensor, u32),
    FIELD("at", weft_op, tiles.at, weft_schema_tile_addr),
    BLOCK_FIELDS,
    FIELD("overflow", weft_op, tiles.wrap, weft_schema_overflow, OURS),
};
static const shape write_tiles = STRUCT("a WriteTiles", write_tiles_fields);

static const field mcast_send_fields[] = {
    FIELD("buf", weft_op, mcast_send.buf, u32),
    FIELD("pages", weft_op, mcast_send.pages, u64),
    FIELD("group", weft_op, mcast_send.group, u32),
    FIELD("hold_path", weft_op, mcast_send.hold_path, weft_schema_bool),
};
static const shape mcast_send = PLAIN_STRUCT("an McastSend", mcast_send_fields);
static const field mcast_set_valid_fields[] = {
    FIELD("sem", weft_op, mcast_set_valid.sem, u32),
    FIELD("group", weft_op, mcast_set_valid.group, u32),
};
static const shape mcast_set_valid = PLAIN_STRUCT("an McastSetValid", mcast_set_valid_fields);
static const shape_case arch_cases[] = {WEFT_ARCH_CONDS(SCHEMA_CASE)};
static const shape arch = NAMES("a condition on the part", arch_cases, weft_arch_cond);
static const field flush_fields[] = {FIELD("cond", weft_op, flush, arch)};
static const shape flush = PLAIN_STRUCT("a Flush", flush_fields);

static const shape_case sem_value_cases[] = {
    UNIT("Invalid"),
    UNIT("Valid"),
    CASE("Count", u64, .offset = offsetof(weft_op, sem_set.count)),
};
static const shape sem_value = PLAIN_CHOICE("a semaphore's value", sem_value_cases, weft_op, sem_set.value);
static const field sem_set_fields[] = {
    FIELD("sem", weft_op, sem_set.sem, u32),
    NESTED("value", sem_value),
};
static const shape sem_set = PLAIN_STRUCT("a SemSet", sem_set_fields);
static const field sem_inc_fields[] = {
    FIELD("sem", weft_op, sem_inc.sem, u32),
    FIELD("at", weft_op, sem_inc.at, weft_schema_site),
    FIELD("by", weft_op, sem_inc.by, u64),
};
static const shape sem_inc = PLAIN_STRUCT("a SemInc", sem_inc_fields);
static const shape_case sem_cond_cases[] = {
    CASE("Equals", u64, .offset = offsetof(weft_op, sem_wait.count)),
    CASE("AtLeast", u64, .offset = offsetof(weft_op, sem_wait.count)),
};
static const shape sem_cond = PLAIN_CHOICE("a semaphore's condition", sem_cond_cases, weft_op, sem_wait.at_least);
static const field sem_wait_fields[] = {
    FIELD("sem", weft_op, sem_wait.sem, u32),
    NESTED("until", sem_cond),
};
static const shape sem_wait = PLAIN_STRUCT("a SemWait", sem_wait_fields);

static const field acquire_fields[] = {FIELD("tiles", weft_op, acquire_tiles, u64)};
static const shape acquire = PLAIN_STRUCT("an AcquireAcc", acquire_fields);
static const shape optional_reload = OPTION(weft_op, compute.acc_reload, compute.max_ids, WEFT_MAX_RELOAD);
static const field compute_fields[] = {
    FIELD("op", weft_op, compute.op, weft_schema_op_box),
    FIELD("ins", weft_op, compute.ins, weft_schema_u32_list),
    FIELD("acc_reload", weft_op, compute.acc_reload, optional_reload, OPTIONAL),
};
static const shape compute = STRUCT("a Compute", compute_fields);
static const field pack_fields[] = {
    FIELD("to", weft_op, pack.to, u32),
    FIELD("tiles", weft_op, pack.tiles, u64),
    FIELD("convert", weft_op, pack.convert, weft_schema_format),
    FIELD("accumulate", weft_op, pack.accumulate, weft_schema_bool),
    FIELD("overflow", weft_op, pack.wrap, weft_schema_overflow, OURS),
};
static const shape pack = PLAIN_STRUCT("a PackAcc", pack_fields);
static const field barrier_fields[] = {FIELD("group", weft_op, barrier_group, u32)};
static const shape barrier = PLAIN_STRUCT("a Barrier", barrier_fields);

static const field trip_count_fields[] = {
    FIELD("trip", weft_op, loop.trip, u32),
    FIELD("max", weft_op, loop.count, u64),
};
static const shape trip_count = PLAIN_STRUCT("a trip and its greatest count", trip_count_fields);
static const shape_case loop_count_cases[] = {
    CASE("Const", u64, .offset = offsetof(weft_op, loop.count)),
    CASE("Trip", trip_count),
};
static const shape loop_count = {.kind = SHAPE_CHOICE,
                                 .tag = TAG_OPTION,
                                 .noun = "a loop count",
                                 .cases = loop_count_cases,
                                 .count = COUNT_OF(loop_count_cases),
                                 .offset = offsetof(weft_op, loop.trip),
                                 .max_offset = offsetof(weft_op, loop.max_ids),
                                 .bit = WEFT_MAX_TRIP,
                                 .plain = true};
static const field loop_fields[] = {
    FIELD("var", weft_op, loop.var, u32),
    NESTED("count", loop_count),
    FIELD("body", weft_op, loop.body, op_list),
};
static const shape loop = STRUCT("a Loop", loop_fields);

#define OP_DATA_RESERVE .payload = &page
#define OP_DATA_PUSH .payload = &page
#define OP_DATA_WAIT .payload = &page
#define OP_DATA_POP .payload = &page
#define OP_DATA_READ_TILES .payload = &read_tiles
#define OP_DATA_READ_BARRIER
#define OP_DATA_WRITE_TILES .payload = &write_tiles
#define OP_DATA_WRITE_BARRIER
#define OP_DATA_MCAST_SEND .payload = &mcast_send
#define OP_DATA_MCAST_SET_VALID .payload = &mcast_set_valid
#define OP_DATA_FLUSH .payload = &flush
#define OP_DATA_SEM_SET .payload = &sem_set
#define OP_DATA_SEM_INC .payload = &sem_inc
#define OP_DATA_SEM_WAIT .payload = &sem_wait
#define OP_DATA_ACQUIRE_ACC .payload = &acquire
#define OP_DATA_RELEASE_ACC
#define OP_DATA_COMPUTE .payload = &compute
#define OP_DATA_PACK_ACC .payload = &pack
#define OP_DATA_BARRIER .payload = &barrier
#define OP_DATA_LOOP .payload = &loop
#define OP_CASE(id, name_) {.name = (name_), .name_length = sizeof(name_) - 1, OP_DATA_##id},
static const shape_case op_cases[] = {WEFT_CHOREO_OPS(OP_CASE)};
static const shape op_kind = CHOICE("an op", op_cases, weft_op, kind);
static const field op_fields[] = {
    FIELD("stage", weft_op, stage, u32),
    NESTED("op", op_kind),
};
const shape weft_schema_op = STRUCT("a tagged op", op_fields);
static const shape op_list = LIST(weft_schema_op, weft_op);

static const field engine_program_fields[] = {
    FIELD("site", weft_engine_program, site, weft_schema_site),
    FIELD("engine", weft_engine_program, engine, engine),
    FIELD("stages", weft_engine_program, stages, weft_schema_u32_list),
    FIELD("ops", weft_engine_program, ops, op_list),
};
static const shape engine_program = STRUCT("an engine program", engine_program_fields);
static const shape engine_program_list = LIST(engine_program, weft_engine_program);
static const field schedule_fields[] = {FIELD("programs", weft_schedule, programs, engine_program_list)};
static const shape schedule = STRUCT("a schedule", schedule_fields);
const shape weft_schema_schedule = POINTER(schedule, weft_schedule);
