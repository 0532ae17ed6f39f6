/* Firing one actor: what it needs, what it takes, what it emits. */
#include "simulate_private.h"

#include <stdlib.h>

void simulate_mark(weft_simulator *s, uint32_t index) {
  uint32_t word = index / 64;
  uint64_t bit = (uint64_t)1 << (index % 64);
  if (s->ready[word] & bit) return;
  s->ready[word] |= bit;
  if (simulate_random(s))
    s->list[s->list_count++] = index;
  else
    s->ready_words[word / 64] |= (uint64_t)1 << (word % 64);
}

static inline queue *input(const weft_simulator *s, const actor *a, uint32_t i) {
  return &s->queues[s->inputs[a->in + i]];
}
static inline bool has(const weft_simulator *s, const actor *a, uint32_t i) { return input(s, a, i)->count > 0; }
static inline uint64_t front(const weft_simulator *s, const actor *a, uint32_t i) {
  const queue *q = input(s, a, i);
  return q->words[q->head];
}

/* Others are marked only where they may have waited: for room in a full queue, for a token in an empty one. An actor
 * that has fired is tried again by itself. */
static inline void take(weft_simulator *s, const actor *a, uint32_t i) {
  queue *q = input(s, a, i);
  q->head = (q->head + 1) & q->mask;
  if (q->count-- == q->capacity) simulate_mark(s, q->producer);
}

/* Whether a full queue gets room from this firing itself: it is one of the inputs taken (bit i: input i). */
static bool makes_room(const weft_simulator *s, const actor *a, uint32_t q, uint64_t taken) {
  for (uint32_t i = 0; i < a->in_count; i++)
    if (s->inputs[a->in + i] == q && (i >= 64 || taken >> i & 1)) return true;
  return false;
}

/* Whether every queue of result r has room. */
static inline bool room(const weft_simulator *s, const actor *a, uint32_t r, uint64_t taken) {
  for (uint32_t k = s->begins[a->out + r]; k < s->begins[a->out + r + 1]; k++) {
    const queue *q = &s->queues[s->fan[k]];
    if (q->count >= q->capacity && !makes_room(s, a, s->fan[k], taken)) return false;
  }
  return true;
}

/* An unbounded queue's ring is full: doubles it. */
static bool grow(weft_simulator *s, queue *q) {
  uint32_t size = q->mask + 1;
  uint64_t *words = size > UINT32_MAX / 4 ? NULL : WEFT_NEW_ARRAY(s->arena, uint64_t, 2 * (uint64_t)size);
  if (!words) {
    s->bad_memory = true;
    return false;
  }
  for (uint32_t i = 0; i < q->count; i++) words[i] = q->words[(q->head + i) & q->mask];
  q->words = words;
  q->head = 0;
  q->mask = 2 * size - 1;
  return true;
}

static inline void emit(weft_simulator *s, const actor *a, uint32_t r, uint64_t word) {
  for (uint32_t k = s->begins[a->out + r]; k < s->begins[a->out + r + 1]; k++) {
    queue *q = &s->queues[s->fan[k]];
    if (q->count > q->mask && !grow(s, q)) return;
    q->words[(q->head + q->count) & q->mask] = word;
    if (q->count++ == 0) simulate_mark(s, q->consumer);
  }
}

static int faulted(weft_simulator *s, weft_fault fault) {
  s->report.fault = fault;
  return -1;
}

static const uint64_t all = UINT64_MAX;

/* ---- actors --------------------------------------------------------------------------------------------------- */

static int fire_source(weft_simulator *s, const actor *a) {
  const source *from = &s->sources[a->detail];
  weft_channel *feed = from->feed;
  bool unused = from->kind == SOURCE_STREAM && s->begins[a->out] == s->begins[a->out + 1];
  if (unused || !weft_channel_waiting(feed) || !room(s, a, 0, 0)) return 0;
  emit(s, a, 0, feed->words[feed->begin++]);
  return 1;
}

static int fire_compute(weft_simulator *s, const actor *a) {
  uint64_t in[3] = {0, 0, 0}, out;
  for (uint32_t i = 0; i < a->in_count; i++) {
    const queue *q = input(s, a, i);
    if (!q->count) return 0;
    in[i] = q->words[q->head];
  }
  if (!room(s, a, 0, all)) return 0;
  weft_fault bad = a->compute.apply(&a->compute, in, &out);
  if (bad) return faulted(s, bad);
  for (uint32_t i = 0; i < a->in_count; i++) take(s, a, i);
  emit(s, a, 0, out);
  return 1;
}

static int fire_constant(weft_simulator *s, const actor *a) {
  if (!has(s, a, 0) || !room(s, a, 0, all)) return 0;
  take(s, a, 0);
  emit(s, a, 0, a->held);
  return 1;
}

static int fire_sync(weft_simulator *s, const actor *a) {
  for (uint32_t i = 0; i < a->in_count; i++)
    if (!has(s, a, i)) return 0;
  for (uint32_t i = 0; i < a->in_count; i++)
    if (!room(s, a, i, all)) return 0;
  if (a->in_count == 2) { /* by far the most frequent */
    uint64_t x = front(s, a, 0), y = front(s, a, 1);
    take(s, a, 0);
    take(s, a, 1);
    emit(s, a, 0, x);
    emit(s, a, 1, y);
    return 1;
  }
  for (uint32_t i = 0; i < a->in_count; i++) {
    uint64_t word = front(s, a, i);
    take(s, a, i);
    emit(s, a, i, word);
  }
  return 1;
}

static int fire_mux(weft_simulator *s, const actor *a) {
  if (!has(s, a, 0)) return 0;
  uint64_t lane = front(s, a, 0);
  if (lane >= a->in_count - 1) return faulted(s, WEFT_FAULT_LANE);
  uint32_t chosen = (uint32_t)lane + 1;
  if (!has(s, a, chosen) || !room(s, a, 0, 1 | (chosen < 64 ? (uint64_t)1 << chosen : 0))) return 0;
  uint64_t word = front(s, a, chosen);
  take(s, a, 0);
  take(s, a, chosen);
  emit(s, a, 0, word);
  return 1;
}

static int fire_demux(weft_simulator *s, const actor *a) {
  if (!has(s, a, 0) || !has(s, a, 1)) return 0;
  uint64_t lane = front(s, a, 0), word = front(s, a, 1);
  if (lane >= a->out_count) return faulted(s, WEFT_FAULT_LANE);
  if (!room(s, a, (uint32_t)lane, all)) return 0;
  take(s, a, 0);
  take(s, a, 1);
  emit(s, a, (uint32_t)lane, word);
  return 1;
}

/* Inputs: cond, init, next. */
static int fire_carry(weft_simulator *s, actor *a) {
  uint32_t from = 1;
  if (a->state) {
    if (!has(s, a, 0)) return 0;
    if (!front(s, a, 0)) {
      take(s, a, 0);
      a->state = 0;
      return 1;
    }
    from = 2;
  }
  if (!has(s, a, from) || !room(s, a, 0, (uint64_t)1 << from | (from == 2))) return 0;
  uint64_t word = front(s, a, from);
  if (a->state) take(s, a, 0);
  take(s, a, from);
  a->state = 1;
  emit(s, a, 0, word);
  return 1;
}

/* Inputs: cond, init. */
static int fire_invariant(weft_simulator *s, actor *a) {
  uint32_t from = a->state ? 0 : 1;
  if (!has(s, a, from)) return 0;
  if (a->state && !front(s, a, 0)) {
    take(s, a, 0);
    a->state = 0;
    return 1;
  }
  if (!room(s, a, 0, (uint64_t)1 << from)) return 0;
  if (!a->state) a->held = front(s, a, 1);
  take(s, a, from);
  a->state = 1;
  emit(s, a, 0, a->held);
  return 1;
}

static int fire_gate(weft_simulator *s, actor *a) {
  if (!has(s, a, 0) || !has(s, a, 1)) return 0;
  uint64_t condition = front(s, a, 0), word = front(s, a, 1);
  bool tell = a->state, pass = condition != 0;
  if ((tell && !room(s, a, 0, all)) || (pass && !room(s, a, 1, all))) return 0;
  take(s, a, 0);
  take(s, a, 1);
  a->state = pass;
  if (tell) emit(s, a, 0, condition);
  if (pass) emit(s, a, 1, word);
  return 1;
}

/* Takes the bounds: the rounds to come, or a fault. */
static bool begin_stream(weft_simulator *s, actor *a) {
  uint32_t width = a->compute.width;
  bool wide = a->compute.predicate;
  uint64_t lower = front(s, a, 0), upper = front(s, a, 1), step = front(s, a, 2);
  if (wide) {
    lower = scalar_unsigned(width, lower);
    upper = scalar_unsigned(width, upper);
    step = scalar_unsigned(width, step);
  }
  if (wide ? step == 0 : (int64_t)step <= 0) return false;
  bool runs = wide ? lower < upper : (int64_t)lower < (int64_t)upper;
  a->left = runs ? (upper - lower - 1) / step + 1 : 0;
  a->held = front(s, a, 0);
  a->step = step;
  return true;
}

static int fire_stream(weft_simulator *s, actor *a) {
  uint64_t taken = a->state ? 0 : all;
  if (!a->state) {
    for (uint32_t i = 0; i < 3; i++)
      if (!has(s, a, i)) return 0;
    if (!begin_stream(s, a)) return faulted(s, WEFT_FAULT_STEP);
  }
  bool goes_on = a->left > 0;
  if (!room(s, a, 1, taken) || (goes_on && !room(s, a, 0, taken))) return 0;
  if (!a->state)
    for (uint32_t i = 0; i < 3; i++) take(s, a, i);
  a->state = goes_on;
  if (goes_on) {
    emit(s, a, 0, a->held);
    a->held = scalar_wrap(a->compute.width, a->held + a->step);
    a->left--;
  }
  emit(s, a, 1, goes_on);
  return 1;
}

static int fire_load(weft_simulator *s, const actor *a) {
  if (!has(s, a, 0) || !has(s, a, 1) || !room(s, a, 0, all) || !room(s, a, 1, all)) return 0;
  weft_memory *buffer = s->memories[a->memory].buffer;
  uint64_t at = front(s, a, 0);
  if (at >= buffer->count) return faulted(s, WEFT_FAULT_BOUNDS);
  if (buffer->written && !buffer->written[at]) return faulted(s, WEFT_FAULT_UNWRITTEN);
  take(s, a, 0);
  take(s, a, 1);
  buffer->loads++;
  emit(s, a, 0, buffer->words[at]);
  emit(s, a, 1, 0);
  return 1;
}

/* Inputs: address, data, control. */
static int fire_store(weft_simulator *s, const actor *a) {
  if (!has(s, a, 0) || !has(s, a, 1) || !has(s, a, 2) || !room(s, a, 0, all)) return 0;
  weft_memory *buffer = s->memories[a->memory].buffer;
  uint64_t at = front(s, a, 0), word = front(s, a, 1);
  if (at >= buffer->count) return faulted(s, WEFT_FAULT_BOUNDS);
  for (uint32_t i = 0; i < 3; i++) take(s, a, i);
  if (buffer->written) buffer->written[at] = 1;
  buffer->words[at] = word;
  buffer->stores++;
  emit(s, a, 0, 0);
  return 1;
}

static int fire_sink(weft_simulator *s, const actor *a) {
  if (!has(s, a, 0)) return 0;
  sink *k = &s->sinks[a->detail];
  uint64_t word = front(s, a, 0);
  take(s, a, 0);
  if (k->kind == SINK_STREAM) {
    if (!weft_channel_push(k->into, word)) s->bad_memory = true;
  } else if (k->came == 0) {
    k->word = word;
    s->missing--;
  }
  k->came++;
  return 1;
}

int simulate_fire(weft_simulator *s, uint32_t index) {
  actor *a = &s->actors[index];
  switch (a->kind) {
  case ACTOR_SOURCE: return fire_source(s, a);
  case ACTOR_COMPUTE: return fire_compute(s, a);
  case ACTOR_CONSTANT: return fire_constant(s, a);
  case ACTOR_SYNC: return fire_sync(s, a);
  case ACTOR_MUX: return fire_mux(s, a);
  case ACTOR_DEMUX: return fire_demux(s, a);
  case ACTOR_CARRY: return fire_carry(s, a);
  case ACTOR_INVARIANT: return fire_invariant(s, a);
  case ACTOR_GATE: return fire_gate(s, a);
  case ACTOR_STREAM: return fire_stream(s, a);
  case ACTOR_LOAD: return fire_load(s, a);
  case ACTOR_STORE: return fire_store(s, a);
  case ACTOR_SINK: return fire_sink(s, a);
  }
  return 0;
}
