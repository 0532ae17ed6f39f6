/* Link points, all-reduces over chips, and the walk of what is not recognised. */
#include "emit_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- all-reduces
 * ------------------------------------------------------------------------------------------------------------ */

const weft_collective *weft_codegen_find_collective(const weft_chip_code *code, const weft_graph_op *op) {
  uint64_t count = 0;
  const weft_collective_node *node =
      op->in_count ? weft_codegen_find_node(code->collectives, code->graph->values[op->ins[0]].name, &count) : NULL;
  for (uint64_t k = 0; k < count; k++) {
    const weft_collective *collective = &code->collectives->items[node[k].collective];
    if (node[k].node != 0 || collective->node_count != op->in_count) continue;
    uint32_t i = 1;
    while (i < op->in_count && strcmp(collective->nodes[i], code->graph->values[op->ins[i]].name) == 0) i++;
    if (i == op->in_count) return collective;
  }
  return NULL;
}

static uint32_t tensor_by_name(const weft_chip_code *code, const char *name) {
  uint64_t low = 0, high = code->program->tensor_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (strcmp(code->program->tensors[code->by_name[middle]].name, name) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  bool found = low < code->program->tensor_count && strcmp(code->program->tensors[code->by_name[low]].name, name) == 0;
  return found ? code->by_name[low] : WEFT_NONE;
}

static void u32_list(weft_text *text, const char *separator, const char *field, const uint32_t *items, uint32_t count) {
  weft_text_printf(text, "%s.%s = (const uint32_t[]){", separator, field);
  for (uint32_t i = 0; i < count; i++) weft_text_printf(text, "%s%" PRIu32, i ? ", " : "", items[i]);
  weft_text_puts(text, "}");
}

/** The parameters of a collective on this chip: owners, local slots of the nodes it holds, readers. */
static void collective_parameters(weft_chip_code *code, const weft_collective *collective, const int64_t *slots) {
  weft_text *text = &code->functions;
  int64_t *list = WEFT_NEW_ARRAY(code->arena, int64_t, (uint64_t)collective->node_count + collective->reader_count);
  if (!list) {
    code->status = weft_error_memory(code->diag);
    return;
  }
  for (uint32_t i = 0; i < collective->node_count; i++) list[i] = collective->owners[i];
  weft_text_puts(text, ",\n    .node_chip = ");
  weft_codegen_block(code, text, list, collective->node_count);
  weft_text_puts(text, ", .node_slot = ");
  weft_codegen_block(code, text, slots, collective->node_count);
  for (uint32_t i = 0; i < collective->reader_count; i++) list[i] = collective->readers[i];
  weft_text_printf(text, ", .reader_count = %" PRIu32 ", .reader_chip = ", collective->reader_count);
  weft_codegen_block(code, text, list, collective->reader_count);
}

void weft_codegen_all_reduce(weft_chip_code *code, const weft_collective *collective, int64_t out,
                             const uint32_t *chain, uint32_t chain_count, const char *name) {
  uint32_t n = collective->node_count;
  int64_t *slots = WEFT_NEW_ARRAY(code->arena, int64_t, n),
          *reads = WEFT_NEW_ARRAY(code->arena, int64_t, (uint64_t)n + chain_count);
  if (!slots || !reads) {
    code->status = weft_error_memory(code->diag);
    return;
  }
  uint64_t read_count = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t tensor = collective->owners[i] == code->chip ? tensor_by_name(code, collective->nodes[i]) : WEFT_NONE;
    slots[i] = tensor == WEFT_NONE ? -1 : weft_codegen_slot(code, tensor);
    if (slots[i] >= 0) reads[read_count++] = slots[i];
  }
  char variable[48], target[96];
  snprintf(variable, sizeof variable, "all_reduce_%" PRIu64, code->step_count);
  snprintf(target, sizeof target, ".all_reduce = &%s", variable);
  weft_text *text = &code->functions;
  weft_text_printf(text,
                   "static const weft_abi_all_reduce %s = {\n    .out = %" PRId64
                   ", .pool = %d /* %s */, .format = %d /* %s */, .rows = %" PRIu64 ", .cols = %" PRIu64
                   ", .of = %" PRIu32 ", .node_count = %" PRIu32,
                   variable, out, (int)collective->pool, weft_pool_name(collective->pool), (int)collective->format,
                   weft_format_name(collective->format), collective->rows, collective->cols, collective->of, n);
  u32_list(text, ",\n    ", "first", collective->firsts, n);
  u32_list(text, ", ", "count", collective->counts, n);
  collective_parameters(code, collective, slots);
  weft_codegen_epilogue(code, text, "    ", chain, chain_count);
  weft_text_puts(text, "};\n\n");
  for (uint32_t i = 0; i < chain_count; i++) {
    const weft_graph_op *op = &code->graph->ops[chain[i]];
    if (op->kind == WEFT_GRAPH_BIAS) reads[read_count++] = weft_codegen_slot(code, code->tensor_of_value[op->ins[1]]);
  }
  weft_codegen_step(code, "ALL_REDUCE", name, target, reads, read_count, &out, out >= 0, 0);
  code->done[collective - code->collectives->items] = 1;
}

static bool reads_result(const weft_collective *collective, uint32_t chip) {
  for (uint32_t i = 0; i < collective->reader_count; i++)
    if (collective->readers[i] == chip) return true;
  return false;
}

/** A chip that only holds nodes of a collective takes part where its link would have sent them. */
static void owner_step(weft_chip_code *code, const char *tensor) {
  uint64_t count;
  const weft_collective_node *node = weft_codegen_find_node(code->collectives, tensor, &count);
  for (uint64_t k = 0; k < count; k++) {
    const weft_collective *collective = &code->collectives->items[node[k].collective];
    if (code->done[node[k].collective] || collective->owners[node[k].node] != code->chip ||
        reads_result(collective, code->chip))
      continue;
    weft_codegen_all_reduce(code, collective, -1, NULL, 0, tensor);
  }
}

/* ---- links
 * ---------------------------------------------------------------------------------------------------------------------
 */

/** The tensors that cross by themselves, not as part of an all-reduce. */
static uint64_t list_crossings(weft_chip_code *code, const uint32_t *tensors, const uint16_t *peers, uint64_t count,
                               int64_t *slots, int64_t *chips) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < count; i++) {
    if (code->program->tensors[tensors[i]].has_partial) continue;
    slots[kept] = weft_codegen_slot(code, tensors[i]);
    chips[kept++] = peers[i];
  }
  return kept;
}

/** How many from `first` on are of one slot (step 0) or of consecutive ones. */
static uint64_t run_length(const int64_t *slots, uint64_t first, uint64_t count, int *step) {
  uint64_t length = 1;
  *step = first + 1 < count && slots[first + 1] == slots[first] + 1;
  while (first + length < count && slots[first + length] == slots[first + length - 1] + *step) length++;
  return length;
}

/** The rows of a table of crossings; returns their number. */
static uint64_t crossing_rows(weft_chip_code *code, weft_text *rows, const int64_t *slots, const int64_t *chips,
                              uint64_t count) {
  uint64_t entries = 0;
  int step;
  for (uint64_t i = 0, length; i < count; i += length) {
    length = run_length(slots, i, count, &step);
    bool ring = weft_codegen_is_ring(chips + i, length, code->chip);
    weft_text_puts(rows, entries == 0 ? "" : entries % 4 ? ", " : ",\n     ");
    weft_text_printf(rows, "{.tensor = %" PRId64 ", .peer = ", slots[i]);
    weft_codegen_series(code, rows, chips + i, length, code->chip, ring);
    if (length > 1) weft_text_printf(rows, ", .count = %" PRIu64 ", .step = %d, .ring = %d", length, step, ring);
    weft_text_puts(rows, "}");
    entries++;
  }
  return entries;
}

static uint64_t without_repeats(int64_t *slots, uint64_t count) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < count; i++)
    if (kept == 0 || slots[kept - 1] != slots[i]) slots[kept++] = slots[i];
  return kept;
}

static void emit_link(weft_chip_code *code, const weft_link_point *link) {
  int64_t *sends = WEFT_NEW_ARRAY(code->arena, int64_t, link->send_count),
          *to = WEFT_NEW_ARRAY(code->arena, int64_t, link->send_count);
  int64_t *receives = WEFT_NEW_ARRAY(code->arena, int64_t, link->receive_count),
          *from = WEFT_NEW_ARRAY(code->arena, int64_t, link->receive_count);
  if (!sends || !receives || !to || !from) {
    code->status = weft_error_memory(code->diag);
    return;
  }
  weft_text rows = {0}, out = {0}, *text = &code->functions;
  uint64_t sent = list_crossings(code, link->sends, link->send_peers, link->send_count, sends, to);
  uint64_t received = list_crossings(code, link->receives, link->receive_peers, link->receive_count, receives, from);
  uint64_t send_rows = crossing_rows(code, &rows, sends, to, sent),
           receive_rows = crossing_rows(code, &out, receives, from, received);
  if (sent + received) {
    char target[64];
    snprintf(target, sizeof target, ".link = &link_%" PRIu64, code->link_count);
    weft_text_printf(text, "static const weft_abi_link link_%" PRIu64 " = {\n", code->link_count);
    if (sent)
      weft_text_printf(text, "    .sends = (const weft_abi_crossing[]){%s}, .send_count = %" PRIu64 ",\n", rows.data,
                       send_rows);
    if (received)
      weft_text_printf(text, "    .receives = (const weft_abi_crossing[]){%s}, .receive_count = %" PRIu64 ",\n",
                       out.data, receive_rows);
    weft_text_puts(text, "};\n\n");
    sent = without_repeats(sends, sent);
    weft_codegen_step(code, "LINK", "link", target, sends, sent, receives, received, 0);
    code->link_count++;
  }
  if (rows.failed || out.failed) code->status = weft_error_memory(code->diag);
  weft_text_free(&rows);
  weft_text_free(&out);
}

void weft_codegen_link(weft_chip_code *code, const weft_link_point *link) {
  if ((link->send_count && !link->send_peers) || (link->receive_count && !link->receive_peers)) {
    code->status =
        weft_error(code->diag, WEFT_INVALID, "shard the whole-machine program with weft: its links name their peers",
                   "chip %u: a link point without peers can be checked, not run", code->chip);
    return;
  }
  for (uint64_t i = 0; i < link->send_count && code->status == WEFT_OK; i++) {
    const weft_tensor *tensor = &code->program->tensors[link->sends[i]];
    if (tensor->has_partial) owner_step(code, tensor->name);
  }
  if (code->status == WEFT_OK) emit_link(code, link);
}

/* ---- walk
 * ------------------------------------------------------------------------------------------------------------------------
 */

/** The dump as C string literals, cut so that no line is long. */
static void dump_literal(weft_text *text, const weft_text *dump) {
  enum { LINE = 96 };
  char piece[LINE + 1];
  for (size_t i = 0; i < dump->length; i += LINE) {
    size_t length = dump->length - i < LINE ? dump->length - i : LINE;
    memcpy(piece, dump->data + i, length);
    piece[length] = 0;
    weft_text_puts(text, "    \"");
    weft_text_c_string(text, piece);
    weft_text_puts(text, "\"\n");
  }
}

void weft_codegen_walk(weft_chip_code *code) {
  const weft_program *program = code->program;
  weft_text dump = {0}, *text = &code->functions;
  weft_program_write(code->options->scheduled, &dump);
  int64_t *slots = WEFT_NEW_ARRAY(code->arena, int64_t, 2 * program->tensor_count);
  if (dump.failed || !slots) {
    code->status = weft_error_memory(code->diag);
    weft_text_free(&dump);
    return;
  }
  weft_text_puts(text, "static const char walk_dump[] =\n");
  dump_literal(text, &dump);
  weft_text_puts(text, "    ;\nstatic const char *const walk_tensors[] = {");
  uint64_t reads = 0, writes = 0, count = 0;
  weft_text numbers = {0};
  for (uint64_t i = 0; i < program->tensor_count; i++) {
    const weft_tensor *tensor = &program->tensors[i];
    if (tensor->role == WEFT_ROLE_ACTIVATION) continue;
    int64_t slot = weft_codegen_slot(code, (uint32_t)i);
    weft_text_printf(text, "%s\"", count ? ", " : "");
    weft_text_c_string(text, tensor->has_shard ? tensor->shard.of : tensor->name);
    weft_text_puts(text, "\"");
    weft_text_printf(&numbers, "%s%" PRId64, count++ ? ", " : "", slot);
    if (tensor->role != WEFT_ROLE_OUTPUT) slots[reads++] = slot;
    if (tensor->role == WEFT_ROLE_OUTPUT || tensor->role == WEFT_ROLE_STATE)
      slots[program->tensor_count + writes++] = slot;
  }
  weft_text_printf(
      text,
      "%s};\nstatic const int64_t walk_slots[] = {%s};\nstatic const weft_abi_walk walk = {\n"
      "    .dump = walk_dump, .dump_length = sizeof walk_dump - 1, .tensors = walk_tensors, .slots = walk_slots,\n"
      "    .tensor_count = %" PRIu64
      "};\nstatic void section_0(weft_chip *chip, const int64_t *p, const int64_t *s) {\n"
      "  weft_walk(chip, &walk);\n}\n\n",
      count ? "" : "\"\"", numbers.data ? numbers.data : "0", count);
  weft_codegen_step(code, "SECTION", program->name, ".section = section_0", slots, reads, slots + program->tensor_count,
                    writes, 0);
  weft_text_free(&numbers);
  weft_text_free(&dump);
}
