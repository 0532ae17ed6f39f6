/* What the files of this room share beside the schema. */
#ifndef WEFT_IR_PRIVATE_H
#define WEFT_IR_PRIVATE_H

#include "weft/ir.h"

/* Bytes of an element; the room stands below data/, so it reads the table itself. */
uint64_t weft_ir_format_bytes(weft_format format);
/** "?" for what is no format. */
const char *weft_ir_format_name(weft_format format);
/** Tiles that Loads or Stores move in a step. */
double weft_ir_tiles_moved(const weft_program *p, weft_stage_kind kind);
/** Ops of the schedule, those in loops once; 0 without one. */
uint64_t weft_ir_op_count(const weft_program *p);

/* One of a section's five spans. */
typedef const weft_span *(*weft_ir_span_of)(const weft_section *section);
const weft_span *weft_ir_stages_of(const weft_section *section);
const weft_span *weft_ir_buffers_of(const weft_section *section);
const weft_span *weft_ir_edges_of(const weft_section *section);
const weft_span *weft_ir_semaphores_of(const weft_section *section);
const weft_span *weft_ir_items_of(const weft_section *section);
/* The section whose span holds an id; UINT64_MAX when none does. */
uint64_t weft_ir_section_holding(const weft_program *program, weft_ir_span_of span_of, uint64_t id);

/* Every stage's ports, sorted, so that "is this buffer among them" costs a logarithm whatever the stage. */
typedef struct weft_ir_ports {
  const uint64_t *begin; /* by stage, and one more */
  const uint32_t *sorted;
} weft_ir_ports;
/* False without memory. */
bool weft_ir_ports_in(const weft_program *program, weft_arena *arena, weft_ir_ports *ports);
bool weft_ir_ports_out(const weft_program *program, weft_arena *arena, weft_ir_ports *ports);
bool weft_ir_has_port(const weft_ir_ports *ports, uint64_t stage, uint32_t buffer);

/* The stages that have each buffer among their ports, in ascending order and once each: `stages` from begin[buffer] to
 * begin[buffer + 1]. Ports that name no buffer are left out. */
typedef struct weft_ir_users {
  const uint64_t *begin;
  const uint32_t *stages;
} weft_ir_users;
bool weft_ir_users_of(const weft_program *program, const weft_ir_ports *ports, weft_arena *arena, weft_ir_users *users);

/* For every buffer the first stage that has it among both its ins and its outs, or WEFT_NONE; NULL without memory. */
const uint32_t *weft_ir_carries(const weft_program *program, const weft_ir_ports *ins, const weft_ir_ports *outs,
                                weft_arena *arena);

#endif
