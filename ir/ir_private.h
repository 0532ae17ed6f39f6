/* What the files of this room share beside the schema. */
#ifndef WEFT_IR_PRIVATE_H
#define WEFT_IR_PRIVATE_H

#include "weft/ir.h"

/* Bytes of an element; the room stands below data/, so it reads the table itself. */
uint64_t weft_ir_format_bytes(weft_format format);

/* One of a section's five spans. */
typedef const weft_span *(*weft_ir_span_of)(const weft_section *section);
const weft_span *weft_ir_stages_of(const weft_section *section);
const weft_span *weft_ir_buffers_of(const weft_section *section);
const weft_span *weft_ir_edges_of(const weft_section *section);
const weft_span *weft_ir_semaphores_of(const weft_section *section);
const weft_span *weft_ir_items_of(const weft_section *section);
/* The section whose span holds an id; UINT64_MAX when none does. */
uint64_t weft_ir_section_holding(const weft_program *program, weft_ir_span_of span_of, uint64_t id);

#endif
