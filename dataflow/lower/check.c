/* What can be lowered: checked over the whole source before anything is changed, with one message. */
#include "lower_private.h"

static bool refuse(lowering *l, const weft_mlir_op *op, const char *hint, const char *why) {
  l->status = weft_error_at(l->diag, WEFT_INVALID, weft_mlir_place(l->file, op), hint, "cannot lower %s: %s",
                            op->name->text, why);
  return false;
}

static bool is_memory(const weft_mlir_type *type) { return type->kind == WEFT_MLIR_MEMREF_TYPE; }

/* A type that tokens can have. */
static bool is_scalar(const weft_mlir_type *type) {
  switch (type->kind) {
  case WEFT_MLIR_INDEX_TYPE:
  case WEFT_MLIR_NONE_TYPE:
  case WEFT_MLIR_FLOAT_TYPE: return true;
  case WEFT_MLIR_INTEGER_TYPE: return type->sign == WEFT_MLIR_SIGNLESS && type->width >= 1 && type->width <= 64;
  case WEFT_MLIR_FUNCTION_TYPE:
  case WEFT_MLIR_MEMREF_TYPE:
  case WEFT_MLIR_TENSOR_TYPE:
  case WEFT_MLIR_VECTOR_TYPE:
  case WEFT_MLIR_COMPLEX_TYPE:
  case WEFT_MLIR_TUPLE_TYPE:
  case WEFT_MLIR_DIALECT_TYPE: break;
  }
  return false;
}

static bool is_channel(const weft_mlir_type *type) {
  return type->kind == WEFT_MLIR_DIALECT_TYPE && strcmp(type->name, "dataflow.channel") == 0;
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

/* The memref behind casts. */
static const weft_mlir_value *root_of(const weft_mlir_value *value) {
  for (;;) {
    const weft_mlir_op *definition = weft_mlir_defining_op(value);
    if (!definition || weft_mlir_code(definition) != WEFT_OP_MEMREF_CAST) return value;
    value = definition->operands[0];
  }
}

static bool known_root(const lowering *l, const weft_mlir_value *memory) {
  const weft_mlir_value *root = root_of(memory);
  if (root->is_argument) return root->owner == l->body;
  return weft_mlir_code(root->owner) == WEFT_OP_MEMREF_ALLOC;
}

/* Addresses are row-major arithmetic. */
static bool admit_shape(lowering *l, const weft_mlir_op *op, const weft_mlir_type *type) {
  const char *why;
  uint64_t row;
  if (!weft_memref_rows(type, &row, &why))
    return refuse(l, op, "use a ranked memref with the identity layout and static extents but the first", why);
  if (!is_scalar(type->element) || type->element->kind == WEFT_MLIR_NONE_TYPE)
    return refuse(l, op, NULL, "the element type is no scalar");
  return true;
}

static bool admit_access(lowering *l, const weft_mlir_op *op, const weft_mlir_value *memory) {
  if (!known_root(l, memory))
    return refuse(l, op, "pass the memref in as a memory input, or allocate it here", "the memref's root is not known");
  if (weft_mlir_attribute_of(op, "volatile") || weft_mlir_attribute_of(op, "volatile_"))
    return refuse(l, op, NULL, "the access is volatile");
  if (weft_mlir_attribute_of(op, "ordering")) return refuse(l, op, NULL, "the access is atomic");
  return admit_shape(l, op, memory->type);
}

/* An allocation is one buffer of the launch: its size must not depend on what the graph computes. */
static bool admit_alloc(lowering *l, const weft_mlir_op *op) {
  uint64_t elements;
  if (!admit_shape(l, op, op->results[0].type)) return false;
  if (weft_mlir_elements(op->results[0].type, &elements) && elements > WEFT_MOST_ALLOCATED)
    return refuse(l, op, "an allocation holds up to 2^28 elements; pass a larger memory in", "the buffer is too large");
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const weft_mlir_value *size = op->operands[i];
    const weft_mlir_op *definition = weft_mlir_defining_op(size);
    bool constant = definition && definition->block == l->body && weft_mlir_code(definition) == WEFT_OP_ARITH_CONSTANT;
    if (!constant && !(size->is_argument && size->owner == l->body))
      return refuse(l, op, "use a static shape, or a size that is a value input or a constant of the graph",
                    "the size is computed inside the graph");
  }
  return true;
}

static bool admit_copy(lowering *l, const weft_mlir_op *op) {
  uint64_t ignored;
  if (!admit_access(l, op, op->operands[0]) || !admit_access(l, op, op->operands[1])) return false;
  return weft_mlir_elements(op->operands[0]->type, &ignored) || weft_mlir_elements(op->operands[1]->type, &ignored) ||
         refuse(l, op, "give one of the two memrefs a static shape", "the number of elements is not known");
}

/* ---- ops ------------------------------------------------------------------------------------------------------ */

static bool admit_types(lowering *l, const weft_mlir_op *op, bool control) {
  for (uint32_t i = 0; i < op->operand_count + op->result_count; i++) {
    const weft_mlir_type *type =
        i < op->operand_count ? op->operands[i]->type : op->results[i - op->operand_count].type;
    if (is_memory(type) && control)
      return refuse(l, op, "memrefs are used where they are; do not carry or yield them",
                    "structured control carries a memref");
    if (!is_scalar(type) && !is_memory(type) && !is_channel(type))
      return refuse(l, op, "only integers up to 64 bits, index and floats become tokens",
                    "a value has a type that tokens cannot have");
  }
  return true;
}

/* The memref producers and effects that have no meaning in a token graph are refused through this table of what has
 * one. */
static bool admit_leaf(lowering *l, const weft_mlir_op *op, bool channels) {
  uint32_t code = weft_mlir_code(op);
  bool computing = (code > WEFT_MLIR_NO_CODE && code < WEFT_OP_BUILTIN_MODULE) || code == WEFT_OP_ARITH_CMPI ||
                   code == WEFT_OP_ARITH_CMPF;
  if (computing || code == WEFT_OP_ARITH_CONSTANT) {
    if (op->result_count && is_memory(op->results[0].type))
      return refuse(l, op, NULL, "the memref's root is not known");
    if (code == WEFT_OP_ARITH_CONSTANT && weft_mlir_attribute_of(op, "value")->kind != WEFT_MLIR_INTEGER &&
        weft_mlir_attribute_of(op, "value")->kind != WEFT_MLIR_FLOAT)
      return refuse(l, op, NULL, "the constant is no scalar");
    return true;
  }
  switch (code) {
  case WEFT_OP_MEMREF_LOAD: return admit_access(l, op, op->operands[0]);
  case WEFT_OP_MEMREF_STORE: return admit_access(l, op, op->operands[1]);
  case WEFT_OP_MEMREF_ALLOC: return admit_alloc(l, op);
  case WEFT_OP_MEMREF_COPY: return admit_copy(l, op);
  case WEFT_OP_MEMREF_CAST: return admit_shape(l, op, op->results[0].type);
  case WEFT_DATAFLOW_CHANNEL_SEND:
  case WEFT_DATAFLOW_CHANNEL_RECEIVE:
    if (!channels)
      return refuse(l, op, "bind the channel to a loom.spatial_region and publish that",
                    "channels are events of a thread");
    if (!op->operands[0]->is_argument || op->operands[0]->owner != l->body)
      return refuse(l, op, NULL, "the channel is not bound to the region");
    return true;
  case WEFT_OP_SCF_PARALLEL:
  case WEFT_OP_SCF_FORALL:
    return refuse(l, op, "choose an order first: write it as scf.for", "a parallel form has no order of its own");
  default:
    return refuse(
        l, op,
        "scf.if, for, while and index_switch, arith, math, memref.load, store, alloc, cast and copy can be lowered",
        "its effects are not known");
  }
}

static bool admit_block(lowering *l, const weft_mlir_block *block, bool channels);

static bool admit_op(lowering *l, const weft_mlir_op *op, bool channels) {
  uint32_t code = weft_mlir_code(op);
  bool control = code == WEFT_OP_SCF_IF || code == WEFT_OP_SCF_FOR || code == WEFT_OP_SCF_WHILE ||
                 code == WEFT_OP_SCF_INDEX_SWITCH;
  bool end = code == WEFT_OP_SCF_YIELD || code == WEFT_OP_SCF_CONDITION;
  bool last = code == WEFT_DATAFLOW_GRAPH_RETURN || code == WEFT_OP_FUNC_RETURN || code == WEFT_DATAFLOW_SPATIAL_YIELD;
  if (!control && !end && !last && !admit_leaf(l, op, channels)) return false;
  if (!admit_types(l, op, control || end)) return false;
  for (uint32_t r = 0; r < op->region_count; r++) {
    const weft_mlir_region *region = weft_mlir_op_region(op, r);
    if (region->first != region->last)
      return refuse(l, op, "write its control flow as scf ops", "a region has several blocks");
    if (region->first && !admit_block(l, region->first, channels)) return false;
  }
  return true;
}

static bool admit_block(lowering *l, const weft_mlir_block *block, bool channels) {
  for (const weft_mlir_op *op = block->first; op; op = op->next) {
    uint32_t code = weft_mlir_code(op);
    if (code >= WEFT_DATAFLOW_CONSTANT && code <= WEFT_DATAFLOW_STORE)
      return refuse(l, op, "lower the structured part alone", "token ops stand beside structured ones");
    if (!admit_op(l, op, channels)) return false;
  }
  return true;
}

bool lower_is_token_graph(const weft_mlir_op *graph) {
  for (const weft_mlir_op *op = weft_mlir_op_block(graph, 0)->first; op; op = op->next) {
    uint32_t code = weft_mlir_code(op);
    bool token = (code >= WEFT_DATAFLOW_CONSTANT && code <= WEFT_DATAFLOW_STORE) || code == WEFT_DATAFLOW_GRAPH_RETURN;
    bool computing = code > WEFT_MLIR_NO_CODE && code <= WEFT_OP_ARITH_CMPF && code != WEFT_OP_BUILTIN_MODULE &&
                     code != WEFT_OP_BUILTIN_CAST;
    if (!token && !computing && code != WEFT_OP_MEMREF_ALLOC && code != WEFT_OP_MEMREF_CAST) return false;
  }
  return true;
}

bool lower_admit(lowering *l, const weft_mlir_op *graph, bool channels) {
  l->body = weft_mlir_op_block(graph, 0);
  if (!l->body) return refuse(l, graph, "write its control flow as scf ops", "its body has several blocks");
  bool start = weft_mlir_code(graph) != WEFT_DATAFLOW_GRAPH ||
               (l->body && l->body->argument_count && l->body->arguments[0].type->kind == WEFT_MLIR_NONE_TYPE);
  if (!start) return refuse(l, graph, NULL, "the first argument must be the start, of type none");
  for (uint32_t i = 0; i < l->body->argument_count; i++) {
    const weft_mlir_type *type = l->body->arguments[i].type;
    if (!is_scalar(type) && !is_memory(type) && !(channels && is_channel(type)))
      return refuse(l, graph, NULL, "an argument has a type that tokens cannot have");
  }
  if (!admit_block(l, l->body, channels)) return false;
  /* Those that are used have been named at their use. */
  for (uint32_t i = 0; i < l->body->argument_count; i++)
    if (is_memory(l->body->arguments[i].type) && !weft_memref_exists(l->body->arguments[i].type))
      return refuse(l, graph, "a memory holds less than 2^60 elements", "a memory argument is too large");
  return true;
}
