/* Which stages touch which buffers. */
#include "ir_private.h"

#include <stdlib.h>
#include <string.h>

enum { STAGES_AHEAD = 16 };

void weft_stage_fetch(const weft_stage *stage) {
  __builtin_prefetch(stage->ins);
  __builtin_prefetch(stage->outs);
  if (stage->kind == WEFT_STAGE_LOAD)
    __builtin_prefetch(stage->load.pattern.origin.steps);
  else if (stage->kind == WEFT_STAGE_STORE)
    __builtin_prefetch(stage->store.pattern.origin.steps);
  else if (stage->kind == WEFT_STAGE_COMPUTE)
    __builtin_prefetch(stage->compute);
}

void weft_stage_fetch_ahead(const weft_program *program, uint64_t stage) {
  if (program->stage_count < STAGES_AHEAD || stage >= program->stage_count - STAGES_AHEAD) return;
  weft_stage_fetch(&program->stages[stage + STAGES_AHEAD]);
}

static int compare_ids(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a;
  uint32_t y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void sort_ids(uint32_t *ids, uint64_t count) {
  if (count > 16) {
    qsort(ids, count, sizeof *ids, compare_ids);
    return;
  }
  for (uint64_t i = 1; i < count; i++) {
    uint32_t id = ids[i];
    uint64_t j = i;
    for (; j > 0 && ids[j - 1] > id; j--) ids[j] = ids[j - 1];
    ids[j] = id;
  }
}

static uint64_t port_count(const weft_stage *stage, bool out) { return out ? stage->out_count : stage->in_count; }
static const uint32_t *port_ids(const weft_stage *stage, bool out) { return out ? stage->outs : stage->ins; }

static bool sorted_ports(const weft_program *program, weft_arena *arena, bool out, weft_ir_ports *ports) {
  uint64_t total = 0;
  for (uint64_t i = 0; i < program->stage_count; i++) total += port_count(&program->stages[i], out);
  uint64_t *begin = WEFT_NEW_ARRAY(arena, uint64_t, program->stage_count + 1);
  uint32_t *sorted = WEFT_NEW_ARRAY(arena, uint32_t, total);
  if (!begin || !sorted) return false;
  for (uint64_t i = 0; i < program->stage_count; i++) {
    uint64_t count = port_count(&program->stages[i], out);
    weft_stage_fetch_ahead(program, i);
    if (count) memcpy(sorted + begin[i], port_ids(&program->stages[i], out), count * sizeof *sorted);
    sort_ids(sorted + begin[i], count);
    begin[i + 1] = begin[i] + count;
  }
  *ports = (weft_ir_ports){.begin = begin, .sorted = sorted};
  return true;
}

bool weft_ir_ports_in(const weft_program *program, weft_arena *arena, weft_ir_ports *ports) {
  return sorted_ports(program, arena, false, ports);
}

bool weft_ir_ports_out(const weft_program *program, weft_arena *arena, weft_ir_ports *ports) {
  return sorted_ports(program, arena, true, ports);
}

bool weft_ir_has_port(const weft_ir_ports *ports, uint64_t stage, uint32_t buffer) {
  uint64_t low = ports->begin[stage];
  uint64_t high = ports->begin[stage + 1];
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (ports->sorted[middle] < buffer)
      low = middle + 1;
    else
      high = middle;
  }
  return low < ports->begin[stage + 1] && ports->sorted[low] == buffer;
}

/* Whether the port at `index` of the stage's sorted list is one to count: a buffer, and not the one before again. */
static bool counted(const weft_program *program, const weft_ir_ports *ports, uint64_t stage, uint64_t index) {
  if (ports->sorted[index] >= program->buffer_count) return false;
  return index == ports->begin[stage] || ports->sorted[index] != ports->sorted[index - 1];
}

bool weft_ir_users_of(const weft_program *program, const weft_ir_ports *ports, weft_arena *arena,
                      weft_ir_users *users) {
  uint64_t *begin = WEFT_NEW_ARRAY(arena, uint64_t, program->buffer_count + 2);
  uint32_t *stages = WEFT_NEW_ARRAY(arena, uint32_t, ports->begin[program->stage_count]);
  if (!begin || !stages) return false;
  for (uint64_t s = 0; s < program->stage_count; s++)
    for (uint64_t i = ports->begin[s]; i < ports->begin[s + 1]; i++)
      if (counted(program, ports, s, i)) begin[ports->sorted[i] + 2]++;
  for (uint64_t b = 2; b < program->buffer_count + 2; b++) begin[b] += begin[b - 1];
  for (uint64_t s = 0; s < program->stage_count; s++)
    for (uint64_t i = ports->begin[s]; i < ports->begin[s + 1]; i++)
      if (counted(program, ports, s, i)) stages[begin[ports->sorted[i] + 1]++] = (uint32_t)s;
  *users = (weft_ir_users){.begin = begin, .stages = stages};
  return true;
}

const uint32_t *weft_ir_carries(const weft_program *program, const weft_ir_ports *ins, const weft_ir_ports *outs,
                                weft_arena *arena) {
  uint32_t *updater = WEFT_NEW_ARRAY(arena, uint32_t, program->buffer_count);
  if (!updater) return NULL;
  for (uint64_t b = 0; b < program->buffer_count; b++) updater[b] = WEFT_NONE;
  for (uint64_t s = 0; s < program->stage_count; s++)
    for (uint64_t i = outs->begin[s]; i < outs->begin[s + 1]; i++) {
      uint32_t buffer = outs->sorted[i];
      if (buffer < program->buffer_count && updater[buffer] == WEFT_NONE && weft_ir_has_port(ins, s, buffer))
        updater[buffer] = (uint32_t)s;
    }
  return updater;
}
