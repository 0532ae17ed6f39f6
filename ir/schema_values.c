/* The shapes of small values, access patterns and compute ops. */
#include "schema_private.h"

const shape weft_schema_u8 = {.kind = SHAPE_INTEGER, .width = 1, .most = UINT8_MAX, .plain = true};
const shape weft_schema_u16 = {.kind = SHAPE_INTEGER, .width = 2, .most = UINT16_MAX, .plain = true};
const shape weft_schema_u32 = {.kind = SHAPE_INTEGER, .width = 4, .most = UINT32_MAX, .plain = true};
const shape weft_schema_u64 = {.kind = SHAPE_INTEGER, .width = 8, .most = UINT64_MAX, .plain = true};
const shape weft_schema_i32 = {.kind = SHAPE_INTEGER, .width = 4, .most = INT32_MAX, .is_signed = true, .plain = true};
const shape weft_schema_i64 = {.kind = SHAPE_INTEGER, .width = 8, .most = INT64_MAX, .is_signed = true, .plain = true};
static const shape u32_in_64 = {.kind = SHAPE_INTEGER, .width = 8, .most = UINT32_MAX, .plain = true};
const shape weft_schema_bool = {.kind = SHAPE_BOOL, .noun = "true or false", .plain = true};
const shape weft_schema_string = {.kind = SHAPE_STRING, .noun = "a string"};

#define u8 weft_schema_u8
#define u16 weft_schema_u16
#define u32 weft_schema_u32
#define u64 weft_schema_u64
#define i64 weft_schema_i64

/* ---- names ---- */

#define FORMAT_CASE(id, name, bytes, is_float) UNIT(name),
static const shape_case format_cases[] = {WEFT_FORMATS(FORMAT_CASE)};
const shape weft_schema_format = NAMES("an element format", format_cases, weft_format);

static const shape_case acc_cases[] = {WEFT_ACC_POLICIES(SCHEMA_CASE)};
const shape weft_schema_acc_policy = NAMES("an accumulator policy", acc_cases, weft_acc_policy);

static const shape_case granularity_cases[] = {WEFT_GRANULARITIES(SCHEMA_CASE)};
const shape weft_schema_granularity = NAMES("a granularity", granularity_cases, weft_granularity);

#define POOL_CASE(id, name_)                                                                                           \
  {.name = (name_), .name_length = sizeof(name_) - 1, .ours = WEFT_POOL_##id >= WEFT_POOL_MIN},
static const shape_case pool_cases[] = {WEFT_POOLS(POOL_CASE)};
const shape weft_schema_pool = NAMES("a pool", pool_cases, weft_pool);

static const shape_case dataflow_cases[] = {WEFT_DATAFLOW_POLICIES(SCHEMA_CASE)};
static const shape dataflow = NAMES("a dataflow policy", dataflow_cases, weft_dataflow_policy);

static const shape_case cell_cases[] = {WEFT_CELL_OPS(SCHEMA_CASE)};
static const shape cell_op = NAMES("a cell operation", cell_cases, weft_cell_op);

static const shape_case overflow_cases[] = {UNIT("Fault"), UNIT("Wrap")};
const shape weft_schema_overflow = NAMES("an overflow rule", overflow_cases, bool);

/* ---- small structs ---- */

static const field pair_fields[] = {
    FIELD("0", weft_pair, first, u64),
    FIELD("1", weft_pair, second, u64),
};
const shape weft_schema_pair = PLAIN_TUPLE("an array of two integers", pair_fields);

const shape weft_schema_u32_list = LIST(u32, uint32_t);

static const field site_fields[] = {
    FIELD("x", weft_site, x, u16),
    FIELD("y", weft_site, y, u16),
    FIELD("chip", weft_site, chip, u16, LEFT_OUT),
};
const shape weft_schema_site = PLAIN_STRUCT("a site", site_fields);

static const field block_shape_fields[] = {
    FIELD("osh", weft_block_shape, osh, u64),
    FIELD("osw", weft_block_shape, osw, u64),
    FIELD("ibw", weft_block_shape, ibw, u64),
};
const shape weft_schema_block_shape = PLAIN_STRUCT("a block shape", block_shape_fields);

/* ---- access patterns ---- */

static const field indirect_tile_fields[] = {
    FIELD("index", weft_indirect_tile, index, u32),
    FIELD("tile_stride", weft_indirect_tile, tile_stride, u64),
    FIELD("elems_per_tile", weft_indirect_tile, elems_per_tile, u64),
    FIELD("bound", weft_indirect_tile, bound, weft_schema_pair),
};
static const shape indirect_tile = PLAIN_STRUCT("an indirect tile", indirect_tile_fields);
static const shape optional_indirect_tile = POINTER(indirect_tile, weft_indirect_tile);

static const field step_fields[] = {
    FIELD("0", weft_step, var, u32),
    FIELD("1", weft_step, stride, u64),
};
static const shape step = PLAIN_TUPLE("a loop variable and a stride", step_fields);
static const shape step_list = LIST(step, weft_step);

static const field tile_addr_fields[] = {
    FIELD("base", weft_tile_addr, base, u64),
    FIELD("steps", weft_tile_addr, steps, step_list),
    FIELD("indirect", weft_tile_addr, indirect, optional_indirect_tile, OPTIONAL),
};
const shape weft_schema_tile_addr = STRUCT("a tile address", tile_addr_fields);

static const field access_pattern_fields[] = {
    FIELD("origin", weft_access_pattern, origin, weft_schema_tile_addr),
    FIELD("block_h", weft_access_pattern, block_h, u64),
    FIELD("block_w", weft_access_pattern, block_w, u64),
    FIELD("stride_w", weft_access_pattern, stride_w, u64),
    FIELD("stride_h", weft_access_pattern, stride_h, u64),
};
const shape weft_schema_access_pattern = STRUCT("an access pattern", access_pattern_fields);

static const field indirect_term_fields[] = {
    FIELD("operand", weft_indirect_term, operand, u64),
    FIELD("stride", weft_indirect_term, stride, i64),
    FIELD("modulus", weft_indirect_term, modulus, u64),
};
static const shape indirect_term = PLAIN_STRUCT("an indirect term", indirect_term_fields);
static const shape optional_indirect_term = POINTER(indirect_term, weft_indirect_term);

static const field term_fields[] = {
    FIELD("0", weft_term, var, u32),
    FIELD("1", weft_term, stride, i64),
};
static const shape term = PLAIN_TUPLE("a loop variable and a stride", term_fields);
static const shape term_list = LIST(term, weft_term);

static const field elem_access_fields[] = {
    FIELD("base", weft_elem_access, base, i64),
    FIELD("terms", weft_elem_access, terms, term_list),
    FIELD("indirect", weft_elem_access, indirect, optional_indirect_term, OPTIONAL),
};
static const shape elem_access = STRUCT("an element map", elem_access_fields);
static const shape elem_access_list = LIST(elem_access, weft_elem_access);

/* ---- bodies ---- */

static const shape body_child;

static const shape_case pred_rhs_cases[] = {
    CASE("Const", u64, .offset = offsetof(weft_pred, bound)),
    CASE("Operand", u64, .offset = offsetof(weft_pred, bound)),
};
static const shape pred_rhs = PLAIN_CHOICE("a predicate's bound", pred_rhs_cases, weft_pred, operand_bound);
static const field pred_fields[] = {
    FIELD("0", weft_pred, var, u32),
    NESTED("1", pred_rhs),
};
static const shape pred_data = PLAIN_TUPLE("a loop variable and a bound", pred_fields);
static const shape_case pred_cases[] = {CASE("AxisLt", pred_data), CASE("AxisGe", pred_data)};
static const shape pred = PLAIN_CHOICE("a predicate", pred_cases, weft_pred, ge);

static const field rsqrt_fields[] = {
    FIELD("eps_nano", weft_body_node, eps_nano, u64),
    FIELD("over", weft_body_node, over, u64),
};
static const shape rsqrt = PLAIN_STRUCT("an Rsqrt", rsqrt_fields);
#define SFPU_DATA_EXP
#define SFPU_DATA_RECIP
#define SFPU_DATA_RSQRT .payload = &rsqrt
#define SFPU_DATA_SILU
#define SFPU_DATA_RELU
#define SFPU_DATA_LN
#define SFPU_DATA_TANH .ours = true
#define SFPU_DATA_ERF .ours = true
#define SFPU_CASE(id, name_) {.name = (name_), .name_length = sizeof(name_) - 1, SFPU_DATA_##id},
static const shape_case sfpu_cases[] = {WEFT_SFPU_KINDS(SFPU_CASE)};
static const shape sfpu = PLAIN_CHOICE("an SFPU kind", sfpu_cases, weft_body_node, sfpu);

static const field two_children_fields[] = {
    FIELD("0", weft_body_node, child[0], body_child),
    FIELD("1", weft_body_node, child[1], body_child),
};
static const shape two_children = PLAIN_TUPLE("an array of two body nodes", two_children_fields);
static const field shr_fields[] = {
    FIELD("arg", weft_body_node, child[0], body_child),
    FIELD("by", weft_body_node, value, u32_in_64),
};
static const shape shr = PLAIN_STRUCT("a Shr", shr_fields);
static const field unary_fields[] = {
    NESTED("kind", sfpu),
    FIELD("arg", weft_body_node, child[0], body_child),
};
static const shape unary = PLAIN_STRUCT("a Unary", unary_fields);
static const field select_fields[] = {
    FIELD("cond", weft_body_node, pred, pred),
    FIELD("then", weft_body_node, child[0], body_child),
    FIELD("otherwise", weft_body_node, child[1], body_child),
};
static const shape select_node = PLAIN_STRUCT("a Select", select_fields);
static const field value_select_fields[] = {
    FIELD("cond", weft_body_node, child[0], body_child),
    FIELD("then", weft_body_node, child[1], body_child),
    FIELD("otherwise", weft_body_node, child[2], body_child),
};
static const shape value_select = PLAIN_STRUCT("a ValueSelect", value_select_fields);

#define BODY_DATA_OPERAND .payload = &u64, .offset = offsetof(weft_body_node, value)
#define BODY_DATA_CONST .payload = &u64, .offset = offsetof(weft_body_node, value)
#define BODY_DATA_ADD .payload = &two_children
#define BODY_DATA_SUB .payload = &two_children
#define BODY_DATA_MUL .payload = &two_children
#define BODY_DATA_MIN .payload = &two_children
#define BODY_DATA_MAX .payload = &two_children
#define BODY_DATA_FLOOR_DIV .payload = &two_children
#define BODY_DATA_SHR .payload = &shr
#define BODY_DATA_UNARY .payload = &unary
#define BODY_DATA_SELECT .payload = &select_node
#define BODY_DATA_DIV .payload = &two_children, .ours = true
#define BODY_DATA_VALUE_SELECT .payload = &value_select, .ours = true
#define BODY_CASE(id, name_, arity) {.name = (name_), .name_length = sizeof(name_) - 1, BODY_DATA_##id},
static const shape_case body_cases[] = {WEFT_BODY_NODES(BODY_CASE)};
const shape weft_schema_body_node = PLAIN_CHOICE("a body node", body_cases, weft_body_node, kind);
static const shape body_child = {
    .kind = SHAPE_CHILD, .inner = &weft_schema_body_node, .size = sizeof(weft_body_node), .plain = true};
static const shape body = {.kind = SHAPE_BODY, .inner = &body_child, .size = sizeof(weft_body_node)};

/* ---- generic ---- */

static const field reduce_fields[] = {
    FIELD("pool", weft_iter, pool, weft_schema_pool),
    FIELD("segments", weft_iter, segments, u32, OURS, .fallback = 0),
};
static const shape reduce = PLAIN_STRUCT("a Reduce", reduce_fields);
static const shape_case iter_kind_cases[] = {UNIT("Parallel"), CASE("Reduce", reduce)};
static const shape iter_kind = PLAIN_CHOICE("a kind of axis", iter_kind_cases, weft_iter, reduce);
static const field iter_fields[] = {
    FIELD("var", weft_iter, var, u32),
    FIELD("extent", weft_iter, extent, u64),
    NESTED("kind", iter_kind),
};
static const shape iter = PLAIN_STRUCT("an axis", iter_fields);
static const shape iter_list = LIST(iter, weft_iter);

static const field generic_fields[] = {
    FIELD("iters", weft_generic, iters, iter_list),
    FIELD("ins", weft_generic, ins, elem_access_list),
    FIELD("out", weft_generic, out, elem_access),
    FIELD("body", weft_generic, body, body),
};
static const shape generic = STRUCT("a Generic", generic_fields);

/* ---- scalar bodies ---- */

static const shape_case src_cases[] = {
    CASE("Input", u64, .offset = offsetof(weft_src, index)),
    CASE("Cell", u64, .offset = offsetof(weft_src, index)),
    CASE("Const", i64, .offset = offsetof(weft_src, constant)),
};
static const shape src = PLAIN_CHOICE("a source", src_cases, weft_src, kind);
static const shape optional_c = FLAGGED(src, weft_cell, has_c, c);
static const field cell_fields[] = {
    FIELD("op", weft_cell, op, cell_op),
    FIELD("a", weft_cell, a, src),
    FIELD("b", weft_cell, b, src),
    NESTED("c", optional_c, OPTIONAL),
};
static const shape cell = PLAIN_STRUCT("a cell", cell_fields);
static const shape cell_list = LIST(cell, weft_cell);
static const field scalar_body_fields[] = {
    FIELD("n_in", weft_scalar_body, n_in, u64),
    FIELD("cells", weft_scalar_body, cells, cell_list),
    FIELD("result", weft_scalar_body, result, src),
};
const shape weft_schema_scalar_body = STRUCT("a scalar body", scalar_body_fields);

/* ---- compute ops ---- */

static const shape optional_interm = OPTION(weft_matmul_tiles, interm, max_ids, WEFT_MAX_INTERM);
static const shape optional_trip = OPTION(weft_matmul_tiles, trip, max_ids, WEFT_MAX_TRIP);
static const field matmul_fields[] = {
    FIELD("block", weft_matmul_tiles, block, weft_schema_block_shape),
    FIELD("sub_blocks", weft_matmul_tiles, sub_blocks, weft_schema_pair),
    FIELD("num_blocks", weft_matmul_tiles, num_blocks, u64),
    FIELD("operand", weft_matmul_tiles, operand, weft_schema_format),
    FIELD("acc", weft_matmul_tiles, acc, weft_schema_acc_policy),
    FIELD("dataflow", weft_matmul_tiles, dataflow, dataflow),
    FIELD("interm", weft_matmul_tiles, interm, optional_interm, OPTIONAL),
    FIELD("granularity", weft_matmul_tiles, granularity, weft_schema_granularity),
    FIELD("segments", weft_matmul_tiles, segments, u32, OURS, .fallback = 1),
    FIELD("trip", weft_matmul_tiles, trip, optional_trip, OURS),
};
static const shape matmul = PLAIN_STRUCT("a MatmulTiles", matmul_fields);
static const field requant_fields[] = {
    FIELD("m", weft_compute_op, requant.m, i64),
    FIELD("s", weft_compute_op, requant.s, u32),
};
static const shape requant = PLAIN_STRUCT("a Requant", requant_fields);
static const field bias_fields[] = {FIELD("bias", weft_compute_op, bias, u32)};
static const shape bias = PLAIN_STRUCT("a Bias", bias_fields);

static const shape_case compute_cases[] = {
    [WEFT_COMPUTE_MATMUL_TILES] = CASE("MatmulTiles", matmul, .offset = offsetof(weft_compute_op, matmul)),
    [WEFT_COMPUTE_REQUANT] = CASE("Requant", requant),
    [WEFT_COMPUTE_BIAS] = CASE("Bias", bias),
    [WEFT_COMPUTE_RELU] = UNIT("Relu"),
    [WEFT_COMPUTE_GENERIC] = CASE("Generic", generic, .offset = offsetof(weft_compute_op, generic)),
    [WEFT_COMPUTE_SCALAR] = CASE("Scalar", weft_schema_scalar_body, .offset = offsetof(weft_compute_op, scalar)),
};
const shape weft_schema_compute_op = CHOICE("a compute op", compute_cases, weft_compute_op, kind);
const shape weft_schema_op_box = BOX(weft_schema_compute_op, weft_compute_op);
