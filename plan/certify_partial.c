/* Partial sums (C9): what holds a part of a fold reaches nothing but AllReduces, an AllReduce folds every part once,
 * along the tree of the arithmetic, and every part that is made is folded or sent. */
#include "certify_private.h"

typedef struct partials {
  const weft_program *program;
  const plan_ports *ports;
  const uint32_t *section_of;
  weft_diag *diag;
  bool *folded; /**< by tensor */
} partials;

static const char *section_name(const partials *p, uint32_t stage) {
  return plan_section_name(p->program, p->section_of[stage]);
}

static const char *const hint = "fold it with an AllReduce first; `weft shard` inserts them";

/* ---- loads ---- */

static weft_status check_load(partials *p, const weft_stage *load) {
  const weft_program *program = p->program;
  const weft_tensor *tensor = &program->tensors[load->load.tensor];
  if (!tensor->has_partial) return WEFT_OK;
  for (uint64_t o = 0; o < load->out_count; o++)
    for (uint64_t i = p->ports->reader_begin[load->outs[o]]; i < p->ports->reader_begin[load->outs[o] + 1]; i++) {
      const weft_stage *reader = &program->stages[p->ports->readers[i]];
      if (reader->kind == WEFT_STAGE_ALL_REDUCE) {
        p->folded[tensor->id] = true;
        continue;
      }
      return weft_error(p->diag, WEFT_INVALID, hint,
                        "section `%s`: stage `%s` uses tensor `%s`, which holds segments %u to %u of %u of a sum that "
                        "is still to be folded",
                        section_name(p, reader->id), reader->name, tensor->name, tensor->partial.first,
                        tensor->partial.first + tensor->partial.count, tensor->partial.of);
    }
  return WEFT_OK;
}

/* ---- all-reduces ---- */

static const weft_tensor *operand_of(const partials *p, const weft_stage *reduce, uint64_t i) {
  uint32_t producer = plan_only_producer(p->ports, reduce->ins[i]);
  if (producer == WEFT_NONE || p->program->stages[producer].kind != WEFT_STAGE_LOAD) return NULL;
  return &p->program->tensors[p->program->stages[producer].load.tensor];
}

static weft_body_kind node_of(weft_pool pool) {
  return pool == WEFT_POOL_SUM ? WEFT_BODY_ADD : pool == WEFT_POOL_MAX ? WEFT_BODY_MAX : WEFT_BODY_MIN;
}

/** Whether node `at` of the body folds segments [begin, end) as the tree does, its leaves the operands that hold
 * subtrees. */
static bool folds_tree(const partials *p, const weft_stage *reduce, const weft_body *body, uint32_t at, uint32_t begin,
                       uint32_t end) {
  const weft_body_node *node = &body->nodes[at];
  if (node->kind == WEFT_BODY_OPERAND) {
    const weft_tensor *tensor = node->value < reduce->in_count ? operand_of(p, reduce, node->value) : NULL;
    return tensor && tensor->partial.first == begin && tensor->partial.count == end - begin;
  }
  if (node->kind != node_of(reduce->all_reduce.pool) || end - begin < 2) return false;
  uint32_t half = 1;
  while (half * 2 < end - begin) half *= 2;
  return node->child[0] < at && node->child[1] < at &&
         folds_tree(p, reduce, body, node->child[0], begin, begin + half) &&
         folds_tree(p, reduce, body, node->child[1], begin + half, end);
}

/** Every operand once, in any order: enough where the order of folding does not matter. */
static bool folds_all(const weft_stage *reduce, const weft_body *body) {
  uint64_t operands = 0;
  for (uint64_t i = 0; i < body->node_count; i++) {
    const weft_body_node *node = &body->nodes[i];
    if (node->kind == WEFT_BODY_OPERAND)
      operands++;
    else if (node->kind != node_of(reduce->all_reduce.pool))
      return false;
  }
  return operands == reduce->in_count;
}

static const char *const reduce_hint = "an AllReduce takes the parts of one fold, in order, each once, and combines "
                                       "them along its tree; `weft shard` writes "
                                       "such ones";

static weft_status refuse_reduce(const partials *p, const weft_stage *reduce, const char *what, const char *tensor) {
  return weft_error(p->diag, WEFT_INVALID, reduce_hint, "section `%s`: AllReduce `%s` %s `%s`",
                    section_name(p, reduce->id), reduce->name, what, tensor);
}

static weft_status check_reduce(const partials *p, const weft_stage *reduce, bool *proved) {
  const weft_program *program = p->program;
  const char *result =
      reduce->all_reduce.tensor < program->tensor_count ? program->tensors[reduce->all_reduce.tensor].name : "?";
  uint64_t known = 0;
  for (uint64_t i = 0; i < reduce->in_count; i++) {
    const weft_tensor *tensor = operand_of(p, reduce, i);
    known += tensor && tensor->has_partial;
  }
  if (known == 0 && !program->arithmetic) {
    *proved = false;
    return WEFT_OK;
  }
  uint32_t next = 0, of = 0;
  for (uint64_t i = 0; i < reduce->in_count; i++) {
    const weft_tensor *tensor = operand_of(p, reduce, i);
    if (!tensor || !tensor->has_partial)
      return refuse_reduce(p, reduce, "has an operand that holds no part of a fold, for", result);
    of = i ? of : tensor->partial.of;
    if (tensor->partial.pool != reduce->all_reduce.pool || tensor->partial.of != of)
      return refuse_reduce(p, reduce, "folds in another way than its operand", tensor->name);
    if (tensor->partial.first != next || tensor->partial.count == 0)
      return refuse_reduce(p, reduce, "misses segments, or folds some twice, before operand", tensor->name);
    next += tensor->partial.count;
  }
  if (reduce->in_count == 0 || next != of) return refuse_reduce(p, reduce, "does not fold all segments of", result);
  const weft_generic *combine = plan_generic_of(reduce);
  if (!combine || combine->body.node_count == 0) return refuse_reduce(p, reduce, "combines nothing into", result);
  bool sum = reduce->all_reduce.pool == WEFT_POOL_SUM;
  bool tree = sum ? folds_tree(p, reduce, &combine->body, (uint32_t)combine->body.node_count - 1, 0, of)
                  : folds_all(reduce, &combine->body);
  return tree ? WEFT_OK : refuse_reduce(p, reduce, "does not combine along the tree of the arithmetic, for", result);
}

/* ---- what is made ---- */

static bool is_sent(const weft_program *program, uint32_t tensor) {
  for (uint64_t l = 0; l < program->link_count; l++)
    for (uint64_t i = 0; i < program->links[l].send_count; i++)
      if (program->links[l].sends[i] == tensor) return true;
  return false;
}

static weft_status check_made(const partials *p, const weft_stage *store) {
  const weft_tensor *tensor = &p->program->tensors[store->store.tensor];
  if (!tensor->has_partial || p->folded[tensor->id] || is_sent(p->program, tensor->id)) return WEFT_OK;
  return weft_error(p->diag, WEFT_INVALID, hint,
                    "section `%s`: tensor `%s` holds segments %u to %u of %u of a sum, and no AllReduce folds it",
                    section_name(p, store->id), tensor->name, tensor->partial.first,
                    tensor->partial.first + tensor->partial.count, tensor->partial.of);
}

weft_status certify_partials(const weft_program *program, const plan_ports *ports, const uint32_t *section_of,
                             bool *proved, weft_diag *diag) {
  weft_arena *scratch = weft_arena_new();
  partials p = {program, ports, section_of, diag, NULL};
  if (scratch) p.folded = WEFT_NEW_ARRAY(scratch, bool, program->tensor_count + 1);
  weft_status status = p.folded ? WEFT_OK : weft_error_memory(diag);
  *proved = program->arithmetic != 0;
  for (uint64_t t = 0; t < program->tensor_count; t++) *proved = *proved || program->tensors[t].has_partial;
  for (uint64_t s = 0; s < program->stage_count && !status; s++)
    if (program->stages[s].kind == WEFT_STAGE_LOAD) status = check_load(&p, &program->stages[s]);
  for (uint64_t s = 0; s < program->stage_count && !status; s++)
    if (program->stages[s].kind == WEFT_STAGE_ALL_REDUCE) status = check_reduce(&p, &program->stages[s], proved);
  for (uint64_t s = 0; s < program->stage_count && !status; s++)
    if (program->stages[s].kind == WEFT_STAGE_STORE) status = check_made(&p, &program->stages[s]);
  if (scratch) weft_arena_free(scratch);
  return status;
}
