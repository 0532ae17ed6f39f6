/* 4. Ports: edges go from and to stages that have their buffer, and a FIFO has one of each.
 * 16. Requirements: every handshake in use is asked of the target. */
#include "validate_private.h"

static bool is_local(const weft_edge *e) {
  return e->handshake == WEFT_HANDSHAKE_FIFO || e->handshake == WEFT_HANDSHAKE_VALID_READY;
}

static bool check_edge(check *c, uint64_t e, uint64_t *producers, uint64_t *consumers) {
  const weft_edge *ed = &c->program->edges[e];
  if (!weft_ir_has_port(&c->outs, ed->from, ed->buffer) &&
      !REPORT(c, EDGE_BUFFER_NOT_IN_STAGE_PORTS, edge(e), stage(ed->from), buffer(ed->buffer)))
    return false;
  if (!is_local(ed)) return true;
  producers[ed->buffer]++;
  for (uint64_t i = 0; i < ed->to_count; i++) {
    if (!weft_ir_has_port(&c->ins, ed->to[i], ed->buffer) &&
        !REPORT(c, EDGE_BUFFER_NOT_IN_STAGE_PORTS, edge(e), stage(ed->to[i]), buffer(ed->buffer)))
      return false;
    consumers[ed->buffer]++;
  }
  return true;
}

void weft_validate_ports(check *c) {
  const weft_program *p = c->program;
  if (!weft_ir_ports_in(p, c->arena, &c->ins) || !weft_ir_ports_out(p, c->arena, &c->outs)) {
    weft_check_out_of_memory(c);
    return;
  }
  uint64_t *producers = weft_check_array(c, p->buffer_count, sizeof *producers);
  uint64_t *consumers = weft_check_array(c, p->buffer_count, sizeof *consumers);
  if (!producers || !consumers) return;
  for (uint64_t e = 0; e < p->edge_count; e++)
    if (!check_edge(c, e, producers, consumers)) return;
  for (uint64_t b = 0; b < p->buffer_count; b++) {
    if (p->buffers[b].kind != WEFT_BUFFER_FIFO) continue;
    if (producers[b] != 1 && !REPORT(c, FIFO_PRODUCER_COUNT, buffer(b), number(producers[b]))) return;
    if (consumers[b] != 1 && !REPORT(c, FIFO_CONSUMER_COUNT, buffer(b), number(consumers[b]))) return;
  }
}

void weft_validate_requirements(check *c) {
  const weft_program *p = c->program;
  uint32_t known = p->requires_handshakes;
  for (uint64_t e = 0; e < p->edge_count; e++) {
    weft_handshake_kind kind = p->edges[e].handshake;
    if (known >> kind & 1) continue;
    known |= UINT32_C(1) << kind;
    if (!REPORT(c, HANDSHAKE_NOT_REQUIRED, text(weft_handshake_kind_name(kind)), edge(e))) return;
  }
}
