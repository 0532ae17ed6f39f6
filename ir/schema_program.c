/* The shapes of tensors, stages, buffers, edges, semaphores, sections and the program. */
#include "schema_private.h"

#define u8 weft_schema_u8
#define u16 weft_schema_u16
#define u32 weft_schema_u32
#define u64 weft_schema_u64
#define i64 weft_schema_i64
#define string weft_schema_string
#define pair weft_schema_pair

static const shape optional_site = FLAGGED(weft_schema_site, weft_optional_site, present, site);
static const shape site_list = LIST(weft_schema_site, weft_site);

static const field range_fields[] = {
    FIELD("0", weft_range, low, i64),
    FIELD("1", weft_range, high, i64),
};
static const shape range = PLAIN_TUPLE("an array of two integers", range_fields);

static const field span_fields[] = {
    FIELD("0", weft_span, begin, u64),
    FIELD("1", weft_span, end, u64),
};
static const shape span = PLAIN_TUPLE("an array of two integers", span_fields);

/* ---- tensors ---- */

static const shape_case role_cases[] = {WEFT_TENSOR_ROLES(SCHEMA_CASE)};
static const shape role = NAMES("a tensor role", role_cases, weft_tensor_role);
static const shape_case space_cases[] = {WEFT_TENSOR_SPACES(SCHEMA_CASE)};
static const shape space = NAMES("a tensor space", space_cases, weft_tensor_space);
static const shape_case layout_cases[] = {WEFT_LAYOUTS(SCHEMA_CASE)};
static const shape layout = NAMES("a layout", layout_cases, weft_layout);

static const field elems_fields[] = {
    FIELD("rows", weft_elem_shape, rows, u64),
    FIELD("cols", weft_elem_shape, cols, u64),
};
static const shape elems = PLAIN_STRUCT("a shape in elements", elems_fields);
static const field tiles_fields[] = {
    FIELD("rows_t", weft_tile_grid, rows_t, u64),
    FIELD("cols_t", weft_tile_grid, cols_t, u64),
};
static const shape tiles = PLAIN_STRUCT("a grid of tiles", tiles_fields);

static const field pattern_fields[] = {
    FIELD("modulus", weft_init, pattern.modulus, i64),
    FIELD("shift", weft_init, pattern.shift, i64),
};
static const shape pattern = PLAIN_STRUCT("a Pattern", pattern_fields);
static const field random_fields[] = {
    FIELD("seed", weft_init, random.seed, u32),
    FIELD("shift_milli", weft_init, random.shift_milli, weft_schema_i32),
};
static const shape random_bf16 = PLAIN_STRUCT("a RandomBf16", random_fields);
static const shape i64_list = LIST(i64, int64_t);
static const shape u64_list = LIST(u64, uint64_t);
static const shape_case init_cases[] = {
    [WEFT_INIT_ZERO] = UNIT("Zero"),
    [WEFT_INIT_PATTERN] = CASE("Pattern", pattern),
    [WEFT_INIT_VALUES] = CASE("Values", i64_list, .offset = offsetof(weft_init, values)),
    [WEFT_INIT_FLOAT_VALUES] = CASE("FloatValues", u64_list, .offset = offsetof(weft_init, float_values)),
    [WEFT_INIT_CONST_F] = CASE("ConstF", u64, .offset = offsetof(weft_init, const_f)),
    [WEFT_INIT_RANDOM_BF16] = CASE("RandomBf16", random_bf16),
    [WEFT_INIT_EXTERNAL] = UNIT("External"),
};
static const shape init = CHOICE("a fill", init_cases, weft_init, kind);

static const shape optional_range = FLAGGED(range, weft_tensor, has_range, range);
static const shape optional_chip = {
    .kind = SHAPE_OPTION, .width = 4, .most = UINT16_MAX, .noun = "null or an integer", .plain = true};

static const field partial_fields[] = {
    FIELD("pool", weft_partial, pool, weft_schema_pool),
    FIELD("first", weft_partial, first, u32),
    FIELD("count", weft_partial, count, u32),
    FIELD("of", weft_partial, of, u32),
};
static const shape partial = PLAIN_STRUCT("a partial result", partial_fields);
static const shape optional_partial = FLAGGED(partial, weft_tensor, has_partial, partial);
static const field shard_fields[] = {
    FIELD("of", weft_shard, of, string),
    FIELD("rows", weft_shard, rows, u64),
    FIELD("cols", weft_shard, cols, u64),
    FIELD("row0", weft_shard, row0, u64),
    FIELD("col0", weft_shard, col0, u64),
    FIELD("writer", weft_shard, writer, weft_schema_bool, LEFT_OUT, .fallback = true),
};
static const shape shard = STRUCT("a shard", shard_fields);
static const shape optional_shard = FLAGGED(shard, weft_tensor, has_shard, shard);

static const field tensor_fields[] = {
    FIELD("id", weft_tensor, id, u32),
    FIELD("name", weft_tensor, name, string),
    FIELD("role", weft_tensor, role, role),
    FIELD("elems", weft_tensor, elems, elems),
    FIELD("tiles", weft_tensor, tiles, tiles),
    FIELD("dtype", weft_tensor, dtype, weft_schema_format),
    FIELD("layout", weft_tensor, layout, layout),
    FIELD("space", weft_tensor, space, space),
    FIELD("init", weft_tensor, init, init),
    NESTED("range", optional_range, OPTIONAL),
    FIELD("chip", weft_tensor, chip, optional_chip, LEFT_OUT),
    NESTED("partial", optional_partial, OURS),
    NESTED("shard", optional_shard, OURS),
    FIELD("shape", weft_tensor, shape, u64_list, OURS),
};
const shape weft_schema_tensor = STRUCT("a tensor", tensor_fields);
static const shape tensor_list = LIST(weft_schema_tensor, weft_tensor);

/* ---- stages ---- */

static const shape_case site_role_cases[] = {WEFT_SITE_ROLES(SCHEMA_CASE)};
static const shape site_role = NAMES("a site role", site_role_cases, weft_site_role);

static const shape optional_multicast = OPTION(weft_stage, load.multicast, max_ids, WEFT_MAX_MULTICAST);
static const field load_fields[] = {
    FIELD("tensor", weft_stage, load.tensor, u32),
    FIELD("pattern", weft_stage, load.pattern, weft_schema_access_pattern),
    FIELD("num_blocks", weft_stage, load.num_blocks, u64),
    FIELD("multicast", weft_stage, load.multicast, optional_multicast, OPTIONAL),
};
static const shape load = STRUCT("a Load", load_fields);
static const field store_fields[] = {
    FIELD("tensor", weft_stage, store.tensor, u32),
    FIELD("pattern", weft_stage, store.pattern, weft_schema_access_pattern),
    FIELD("sub_blocks", weft_stage, store.sub_blocks, pair),
};
static const shape store = STRUCT("a Store", store_fields);
static const field recv_fields[] = {FIELD("group", weft_stage, recv.group, u32)};
static const shape recv = PLAIN_STRUCT("a Recv", recv_fields);
static const field all_reduce_fields[] = {
    FIELD("pool", weft_stage, all_reduce.pool, weft_schema_pool),
    FIELD("tensor", weft_stage, all_reduce.tensor, u32),
    FIELD("combine", weft_stage, all_reduce.combine, weft_schema_op_box),
};
static const shape all_reduce = STRUCT("an AllReduce", all_reduce_fields);
static const shape_case stage_kind_cases[] = {
    [WEFT_STAGE_LOAD] = CASE("Load", load),
    [WEFT_STAGE_STORE] = CASE("Store", store),
    [WEFT_STAGE_RECV] = CASE("Recv", recv),
    [WEFT_STAGE_ALL_REDUCE] = CASE("AllReduce", all_reduce),
    [WEFT_STAGE_COMPUTE] = CASE("Compute", weft_schema_op_box, .offset = offsetof(weft_stage, compute)),
    [WEFT_STAGE_SCALAR] = CASE("Scalar", weft_schema_scalar_body, .offset = offsetof(weft_stage, scalar)),
};
static const shape stage_kind = CHOICE("a stage kind", stage_kind_cases, weft_stage, kind);

static const shape optional_item = OPTION(weft_stage, item, max_ids, WEFT_MAX_ITEM);
static const shape stage_origin = OPTION(weft_stage, origin, max_ids, WEFT_MAX_ORIGIN);
static const field stage_fields[] = {
    FIELD("id", weft_stage, id, u32),
    FIELD("name", weft_stage, name, string),
    NESTED("kind", stage_kind),
    FIELD("role", weft_stage, role, site_role),
    FIELD("ins", weft_stage, ins, weft_schema_u32_list),
    FIELD("outs", weft_stage, outs, weft_schema_u32_list),
    FIELD("site", weft_stage, site, optional_site, OPTIONAL),
    FIELD("item", weft_stage, item, optional_item, OPTIONAL),
    FIELD("origin", weft_stage, origin, stage_origin, OPTIONAL),
};
const shape weft_schema_stage = STRUCT("a stage", stage_fields);
static const shape stage_list = LIST(weft_schema_stage, weft_stage);

/* ---- buffers and edges ---- */

static const field ring_fields[] = {
    FIELD("depth_pages", weft_buffer, depth_pages, u64),
    FIELD("page_tiles", weft_buffer, page_tiles, u64),
};
static const shape ring = PLAIN_STRUCT("a ring of pages", ring_fields);
static const field accumulator_fields[] = {
    FIELD("tiles", weft_buffer, page_tiles, u64),
    HIDDEN(weft_buffer, depth_pages, u64, 1),
};
static const shape accumulator = PLAIN_STRUCT("an Accumulator", accumulator_fields);
static const shape_case buffer_kind_cases[] = {
    [WEFT_BUFFER_FIFO] = CASE("Fifo", ring),
    [WEFT_BUFFER_INTERM] = CASE("Interm", ring),
    [WEFT_BUFFER_ACCUMULATOR] = CASE("Accumulator", accumulator),
};
static const shape buffer_kind = PLAIN_CHOICE("a buffer kind", buffer_kind_cases, weft_buffer, kind);
static const shape buffer_origin = OPTION(weft_buffer, origin, max_ids, WEFT_MAX_ORIGIN);
static const shape optional_alias = OPTION(weft_buffer, alias_of, max_ids, WEFT_MAX_ALIAS);
static const field buffer_fields[] = {
    FIELD("id", weft_buffer, id, u32),
    FIELD("name", weft_buffer, name, string),
    NESTED("kind", buffer_kind),
    FIELD("dtype", weft_buffer, dtype, weft_schema_format),
    FIELD("space", weft_buffer, space, weft_schema_mem_space),
    FIELD("site", weft_buffer, site, optional_site, OPTIONAL),
    FIELD("origin", weft_buffer, origin, buffer_origin, OPTIONAL),
    FIELD("alias_of", weft_buffer, alias_of, optional_alias, OPTIONAL),
};
static const shape buffer = STRUCT("a buffer", buffer_fields);
static const shape buffer_list = LIST(buffer, weft_buffer);

static const field handshake_semaphore_fields[] = {
    FIELD("ready", weft_edge, ready, u32),
    FIELD("valid", weft_edge, valid, u32),
    FIELD("ready_count", weft_edge, ready_count, u64),
};
static const shape handshake_semaphore = PLAIN_STRUCT("a Semaphore", handshake_semaphore_fields);
static const field handshake_barrier_fields[] = {FIELD("group", weft_edge, group, u32)};
static const shape handshake_barrier = PLAIN_STRUCT("a Barrier", handshake_barrier_fields);
#define HANDSHAKE_DATA_FIFO
#define HANDSHAKE_DATA_SEMAPHORE .payload = &handshake_semaphore
#define HANDSHAKE_DATA_BARRIER .payload = &handshake_barrier
#define HANDSHAKE_DATA_VALID_READY
#define HANDSHAKE_DATA_TOKEN
#define HANDSHAKE_CASE(id, name_) {.name = (name_), .name_length = sizeof(name_) - 1, HANDSHAKE_DATA_##id},
static const shape_case handshake_cases[] = {WEFT_HANDSHAKE_KINDS(HANDSHAKE_CASE)};
static const shape handshake = PLAIN_CHOICE("a handshake", handshake_cases, weft_edge, handshake);
static const field edge_fields[] = {
    FIELD("id", weft_edge, id, u32),         FIELD("from", weft_edge, from, u32),
    FIELD("buffer", weft_edge, buffer, u32), FIELD("to", weft_edge, to, weft_schema_u32_list),
    NESTED("handshake", handshake),
};
static const shape edge = STRUCT("an edge", edge_fields);
static const shape edge_list = LIST(edge, weft_edge);

/* ---- semaphores ---- */

static const field ready_counter_fields[] = {FIELD("expected", weft_semaphore, count, u64)};
static const shape ready_counter = PLAIN_STRUCT("a ReadyCounter", ready_counter_fields);
static const shape_case barrier_phase_cases[] = {WEFT_BARRIER_PHASES(SCHEMA_CASE)};
static const shape barrier_phase = NAMES("a barrier phase", barrier_phase_cases, weft_barrier_phase);
static const field barrier_fields[] = {
    FIELD("n", weft_semaphore, count, u64),
    FIELD("phase", weft_semaphore, phase, barrier_phase),
};
static const shape barrier = PLAIN_STRUCT("a Barrier", barrier_fields);
static const shape_case sem_role_cases[] = {
    [WEFT_SEM_READY_COUNTER] = CASE("ReadyCounter", ready_counter),
    [WEFT_SEM_VALID_FLAG] = UNIT("ValidFlag"),
    [WEFT_SEM_BARRIER] = CASE("Barrier", barrier),
};
static const shape sem_role = PLAIN_CHOICE("a semaphore role", sem_role_cases, weft_semaphore, role);
static const shape optional_operand = FLAGGED(weft_schema_operand, weft_semaphore, has_operand, operand);
static const field semaphore_fields[] = {
    FIELD("id", weft_semaphore, id, u32),
    FIELD("init", weft_semaphore, init, u32),
    NESTED("role", sem_role),
    NESTED("operand", optional_operand, OPTIONAL),
    FIELD("sites", weft_semaphore, sites, site_list),
};
static const shape semaphore = STRUCT("a semaphore", semaphore_fields);
static const shape semaphore_list = LIST(semaphore, weft_semaphore);

/* ---- plans, sections, trips, links ---- */

static const shape_case packing_cases[] = {WEFT_ENGINE_PACKINGS(SCHEMA_CASE)};
static const shape packing = NAMES("an engine packing", packing_cases, weft_engine_packing);
static const field inner_fields[] = {
    FIELD("num_blocks", weft_block_plan, num_blocks, u64),
    FIELD("block_k_tiles", weft_block_plan, block_k_tiles, u64),
};
static const shape inner = PLAIN_STRUCT("an inner loop", inner_fields);
static const field plan_fields[] = {
    FIELD("per_site_m", weft_block_plan, per_site_m, u64),
    FIELD("per_site_n", weft_block_plan, per_site_n, u64),
    FIELD("grid", weft_block_plan, grid, pair),
    NESTED("inner", inner),
    FIELD("block", weft_block_plan, block, weft_schema_block_shape),
    FIELD("acc", weft_block_plan, acc, weft_schema_acc_policy),
    FIELD("pack_accumulate", weft_block_plan, pack_accumulate, weft_schema_bool),
    FIELD("engines", weft_block_plan, engines, packing),
    FIELD("granularity", weft_block_plan, granularity, weft_schema_granularity),
};
static const shape plan = PLAIN_STRUCT("a block plan", plan_fields);
static const shape section_plan = FLAGGED(plan, weft_section, has_plan, plan);
static const shape work_plan = FLAGGED(plan, weft_work_list, has_plan, plan);

static const field rendezvous_fields[] = {
    FIELD("gather", weft_section, gather, u32),
    FIELD("release", weft_section, release, u32),
};
static const shape rendezvous = PLAIN_STRUCT("a rendezvous", rendezvous_fields);
static const shape optional_rendezvous = {
    .kind = SHAPE_FLAGGED, .inner = &rendezvous, .offset = offsetof(weft_section, has_barrier_after)};
static const shape optional_output = OPTION(weft_section, output, max_ids, WEFT_MAX_OUTPUT);
static const field section_fields[] = {
    FIELD("name", weft_section, name, string),
    FIELD("stages", weft_section, stages, span),
    FIELD("buffers", weft_section, buffers, span),
    FIELD("edges", weft_section, edges, span),
    FIELD("semaphores", weft_section, semaphores, span),
    FIELD("items", weft_section, items, span),
    NESTED("plan", section_plan, OPTIONAL),
    FIELD("k_tiles", weft_section, k_tiles, u64),
    FIELD("output", weft_section, output, optional_output, OPTIONAL),
    NESTED("barrier_after", optional_rendezvous, OPTIONAL),
};
static const shape section = STRUCT("a section", section_fields);
static const shape section_list = LIST(section, weft_section);

static const field trip_fields[] = {
    FIELD("tensor", weft_trip, tensor, u32), FIELD("elem", weft_trip, elem, u64),
    FIELD("admit", weft_trip, admit, range), FIELD("bias", weft_trip, bias, i64),
    FIELD("per", weft_trip, per, u64),
};
static const shape trip = PLAIN_STRUCT("a trip", trip_fields);
static const shape trip_list = LIST(trip, weft_trip);

#define PEERS(peers_, count_)                                                                                          \
  {                                                                                                                    \
    .kind = SHAPE_PARALLEL, .noun = "an array", .inner = &u16, .size = sizeof(uint16_t),                               \
    .offset = (ptrdiff_t)offsetof(weft_link_point, count_) - (ptrdiff_t)offsetof(weft_link_point, peers_)              \
  }
static const shape send_peers = PEERS(send_peers, send_count);
static const shape receive_peers = PEERS(receive_peers, receive_count);
static const shape optional_after = OPTION(weft_link_point, after, max_ids, WEFT_MAX_AFTER);
static const field link_fields[] = {
    FIELD("after", weft_link_point, after, optional_after, OPTIONAL),
    FIELD("sends", weft_link_point, sends, weft_schema_u32_list),
    FIELD("receives", weft_link_point, receives, weft_schema_u32_list),
    FIELD("send_peers", weft_link_point, send_peers, send_peers, OURS),
    FIELD("receive_peers", weft_link_point, receive_peers, receive_peers, OURS),
};
static const shape link = STRUCT("a link point", link_fields);
static const shape link_list = LIST(link, weft_link_point);

/* ---- work ---- */

static const field rect_fields[] = {
    FIELD("row0_t", weft_work_item, row0_t, u64),
    FIELD("col0_t", weft_work_item, col0_t, u64),
    FIELD("h_t", weft_work_item, h_t, u64),
    FIELD("w_t", weft_work_item, w_t, u64),
};
static const shape rect = PLAIN_STRUCT("a rectangle of tiles", rect_fields);
static const field item_fields[] = {
    FIELD("id", weft_work_item, id, u32),
    FIELD("coord", weft_work_item, coord, pair),
    NESTED("out", rect),
};
static const shape item = PLAIN_STRUCT("a work item", item_fields);
static const shape item_list = LIST(item, weft_work_item);
static const shape k_trip = OPTION(weft_work_list, k_trip, max_ids, WEFT_MAX_TRIP);
static const field work_fields[] = {
    FIELD("items", weft_work_list, items, item_list),
    FIELD("k_tiles", weft_work_list, k_tiles, u64),
    NESTED("plan", work_plan, OPTIONAL),
    FIELD("k_trip", weft_work_list, k_trip, k_trip, LEFT_OUT),
};
static const shape work = STRUCT("a work list", work_fields);

/* ---- the program ---- */

static const field tile_fields[] = {
    FIELD("rows", weft_program, tile_rows, u64),
    FIELD("cols", weft_program, tile_cols, u64),
};
static const shape tile = PLAIN_STRUCT("a tile shape", tile_fields);
static const shape_case numerics_cases[] = {WEFT_NUMERICS_POLICIES(SCHEMA_CASE)};
static const shape numerics = NAMES("a numerics policy", numerics_cases, weft_numerics_policy);
static const field approx_fields[] = {FIELD("reason", weft_program, claim_reason, string)};
static const shape approx = STRUCT("an Approx", approx_fields);
static const shape_case claim_cases[] = {UNIT("Exact"), CASE("Approx", approx)};
static const shape claim = {.kind = SHAPE_CHOICE,
                            .tag = TAG_POINTER,
                            .noun = "a claim",
                            .cases = claim_cases,
                            .count = COUNT_OF(claim_cases),
                            .offset = offsetof(weft_program, claim_reason)};

static const shape_case handshake_kind_cases[] = {WEFT_HANDSHAKE_KINDS(SCHEMA_CASE)};
static const shape handshake_set = {.kind = SHAPE_SET,
                                    .noun = "a handshake kind",
                                    .cases = handshake_kind_cases,
                                    .count = COUNT_OF(handshake_kind_cases),
                                    .plain = true};
static const shape_case interconnect_cases[] = {WEFT_INTERCONNECTS(SCHEMA_CASE)};
static const shape interconnect_set = {.kind = SHAPE_SET,
                                       .noun = "an interconnect",
                                       .cases = interconnect_cases,
                                       .count = COUNT_OF(interconnect_cases),
                                       .plain = true};
static const field requires_fields[] = {
    FIELD("handshakes", weft_program, requires_handshakes, handshake_set),
    FIELD("interconnect", weft_program, requires_interconnect, interconnect_set),
};
static const shape requires_shape = PLAIN_STRUCT("requirements", requires_fields);

static const field program_fields[] = {
    FIELD("name", weft_program, name, string),
    NESTED("tile", tile),
    FIELD("tensors", weft_program, tensors, tensor_list),
    FIELD("stages", weft_program, stages, stage_list),
    FIELD("buffers", weft_program, buffers, buffer_list),
    FIELD("edges", weft_program, edges, edge_list),
    FIELD("semaphores", weft_program, semaphores, semaphore_list),
    FIELD("sections", weft_program, sections, section_list, LEFT_OUT),
    FIELD("trips", weft_program, trips, trip_list, LEFT_OUT),
    FIELD("links", weft_program, links, link_list, LEFT_OUT),
    FIELD("work", weft_program, work, work),
    FIELD("numerics", weft_program, numerics, numerics),
    NESTED("claim", claim),
    FIELD("acc_tiles_used", weft_program, acc_tiles_used, u64),
    FIELD("mem_banks", weft_program, mem_banks, u64, LEFT_OUT, .fallback = 1),
    NESTED("requires", requires_shape),
    FIELD("placement", weft_program, placement, weft_schema_placement, OPTIONAL),
    FIELD("memory", weft_program, memory, weft_schema_memory_map, OPTIONAL),
    FIELD("schedule", weft_program, schedule, weft_schema_schedule, OPTIONAL),
    FIELD("arithmetic", weft_program, arithmetic, u32, OURS),
    FIELD("chips", weft_program, chips, u32, OURS),
    FIELD("chip", weft_program, chip, optional_chip, OURS),
};
const shape weft_schema_program = STRUCT("a spatial program", program_fields);

_Static_assert(sizeof(weft_tensor) <= SCHEMA_ELEMENT_MOST, "an element of a list");
_Static_assert(sizeof(weft_stage) <= SCHEMA_ELEMENT_MOST, "an element of a list");
_Static_assert(sizeof(weft_section) <= SCHEMA_ELEMENT_MOST, "an element of a list");
_Static_assert(sizeof(weft_op) <= SCHEMA_ELEMENT_MOST, "an element of a list");
_Static_assert(COUNT_OF(program_fields) <= 64, "the reader keeps the fields it has seen in 64 bits");
