/* Random threads: regions of all kinds of boundaries, alone and inside for, if, while and index_switch, with results
 * that later regions take, and accesses and channel events of the thread's own between them. Names are %t and a number.
 */
#include "generator_private.h"

#include <stdio.h>
#include <string.h>

enum { VISIBLE = 60, THREAD_MEMORIES = 30, THREAD_CHANNELS = 2, BOUND = 4 };

/* What regions of the thread can take. */
typedef struct thread {
  generator *g;
  int names[GENERATOR_KINDS][VISIBLE], counts[GENERATOR_KINDS];
  int memories[THREAD_MEMORIES], memory_count;
  int next, regions, left, rounds;
} thread;

/* Names of the inputs: values 0 to 2, memories 3 to 5, channels 6 to 9; then constants. */
enum { FIRST_MEMORY = 3, FIRST_CHANNEL = 6, ZERO = 10, ONE, THREE, NUMBER, FREE };
static const kind channel_kinds[] = {I32, INDEX, I32, F32};

/* The inputs and results of one region. */
typedef struct boundary {
  int values[BOUND], value_count, memories[BOUND], memory_count;
  bool channels[2 * THREAD_CHANNELS]; /* two received from, two sent to */
  kind kinds[BOUND];
  bundle results;
  int yielded[2], yielded_count; /* places among the memories */
} boundary;

static void put(thread *t, const char *text) { weft_text_puts(t->g->text, text); }
static uint32_t below(thread *t, uint32_t n) { return generator_below(t->g, n); }
static bool chance(thread *t, uint32_t percent) { return generator_chance(t->g, percent); }

static void see(thread *t, kind k, int name) {
  if (t->counts[k] == VISIBLE) t->counts[k]--;
  t->names[k][t->counts[k]++] = name;
}

static int pick(thread *t, kind k) { return t->names[k][below(t, (uint32_t)t->counts[k])]; }

/* ---- regions ------------------------------------------------------------------------------------------------------
 */

static void choose_boundary(thread *t, boundary *b) {
  memset(b, 0, sizeof *b);
  b->value_count = (int)below(t, BOUND + 1);
  for (int i = 0; i < b->value_count; i++) {
    do b->kinds[i] = (kind)below(t, GENERATOR_KINDS);
    while (!t->counts[b->kinds[i]]);
    b->values[i] = pick(t, b->kinds[i]);
  }
  b->memory_count = (int)below(t, BOUND + 1);
  for (int i = 0; i < b->memory_count; i++) b->memories[i] = t->memories[below(t, (uint32_t)t->memory_count)];
  for (int i = 0; i < 2 * THREAD_CHANNELS; i++) b->channels[i] = chance(t, 40);
  b->results.count = chance(t, 50) ? (int)below(t, 3) : 0;
  for (int i = 0; i < b->results.count; i++) b->results.kinds[i] = (kind)below(t, GENERATOR_KINDS);
  b->yielded_count = b->memory_count && chance(t, 30) ? 1 + (int)below(t, 2) : 0;
  for (int i = 0; i < b->yielded_count; i++) b->yielded[i] = (int)below(t, (uint32_t)b->memory_count);
}

typedef enum segment { VALUES, RECEIVED, MEMORIES, SENT } segment;

static int channel_count(const boundary *b, segment s) {
  int first = s == SENT ? THREAD_CHANNELS : 0;
  return b->channels[first] + b->channels[first + 1];
}

/* The operands or, inside, the arguments: with their types, or their types alone. */
typedef enum style { NAMES, ARGUMENTS, TYPES } style;

static void put_one(thread *t, bool *begun, style how, char letter, int outer, int inner, const char *type) {
  if (*begun) put(t, ", ");
  *begun = true;
  if (how == NAMES) weft_text_printf(t->g->text, "%%t%d", outer);
  if (how == ARGUMENTS) weft_text_printf(t->g->text, "%%%c%d: ", letter, inner);
  if (how != NAMES) put(t, type);
}

static void put_channels(thread *t, const boundary *b, style how, bool *begun, segment s) {
  for (int i = s == SENT ? THREAD_CHANNELS : 0, k = 0; k < THREAD_CHANNELS; i++, k++) {
    char type[40];
    snprintf(type, sizeof type, "!dataflow.channel<%s>", generator_types[channel_kinds[i]]);
    if (b->channels[i]) put_one(t, begun, how, s == SENT ? 'o' : 'i', FIRST_CHANNEL + i, i, type);
  }
}

static void put_operands(thread *t, const boundary *b, style how) {
  bool begun = false;
  for (int i = 0; i < b->value_count; i++) put_one(t, &begun, how, 'v', b->values[i], i, generator_types[b->kinds[i]]);
  put_channels(t, b, how, &begun, RECEIVED);
  for (int i = 0; i < b->memory_count; i++)
    put_one(t, &begun, how, 'm', b->memories[i], b->value_count + i, "memref<?xi32>");
  put_channels(t, b, how, &begun, SENT);
}

static void put_result_types(thread *t, const boundary *b) {
  bool begun = false;
  for (int i = 0; i < b->results.count; i++) put_one(t, &begun, TYPES, 0, 0, 0, generator_types[b->results.kinds[i]]);
  for (int i = 0; i < b->yielded_count; i++) put_one(t, &begun, TYPES, 0, 0, 0, "memref<?xi32>");
}

static void enter_region(generator *g, const boundary *b) {
  memset(g->counts, 0, sizeof g->counts);
  g->next = 0;
  for (int i = 0; i < b->value_count; i++) generator_see(g, g->next++, &(bundle){.kinds = {b->kinds[i]}, .count = 1});
  g->memory_count = b->memory_count;
  for (int i = 0; i < b->memory_count; i++) {
    g->memories[i].name = g->next++;
    g->memories[i].fixed = false;
  }
  g->in_count = g->out_count = 0;
  for (int i = 0; i < 2 * THREAD_CHANNELS; i++) {
    if (!b->channels[i]) continue;
    generator_channel c = {.name = i, .element = channel_kinds[i]};
    if (i < THREAD_CHANNELS)
      g->in[g->in_count++] = c;
    else
      g->out[g->out_count++] = c;
  }
}

static void put_yield(thread *t, const boundary *b) {
  bool begun = false;
  int names[3];
  for (int i = 0; i < b->results.count; i++) names[i] = generator_value(t->g, b->results.kinds[i]);
  put(t, "\"loom.spatial_yield\"(");
  for (int i = 0; i < b->results.count; i++) weft_text_printf(t->g->text, "%s%%v%d", i ? ", " : "", names[i]);
  begun = b->results.count > 0;
  for (int i = 0; i < b->yielded_count; i++, begun = true)
    weft_text_printf(t->g->text, "%s%%m%d", begun ? ", " : "", b->value_count + b->yielded[i]);
  weft_text_printf(t->g->text, ") <{operandSegmentSizes = array<i32: %d, %d>}> : (", b->results.count,
                   b->yielded_count);
  put_result_types(t, b);
  put(t, ") -> ()\n");
}

static void region(thread *t) {
  boundary b;
  generator *g = t->g;
  choose_boundary(t, &b);
  int first = t->next, count = b.results.count + b.yielded_count;
  t->next += count;
  for (int i = 0; i < count; i++)
    weft_text_printf(g->text, "%s%%t%d%s", i ? ", " : "", first + i, i + 1 < count ? "" : " = ");
  put(t, "\"loom.spatial_region\"(");
  put_operands(t, &b, NAMES);
  weft_text_printf(g->text,
                   ") <{operandSegmentSizes = array<i32: %d, %d, %d, %d>, resultSegmentSizes = array<i32: %d, %d>}> "
                   "({\n^bb0",
                   b.value_count, channel_count(&b, RECEIVED), b.memory_count, channel_count(&b, SENT), b.results.count,
                   b.yielded_count);
  if (b.value_count + b.memory_count + channel_count(&b, RECEIVED) + channel_count(&b, SENT)) {
    put(t, "(");
    put_operands(t, &b, ARGUMENTS);
    put(t, ")");
  }
  put(t, ":\n");
  enter_region(g, &b);
  g->left = g->options->statements;
  if (chance(t, 90)) generator_body(g);
  put_yield(t, &b);
  put(t, "}) {source_maps = [");
  for (int i = 0; i < channel_count(&b, RECEIVED); i++) put(t, i ? ", affine_map<() -> ()>" : "affine_map<() -> ()>");
  put(t, "]");
  if (chance(t, 70)) weft_text_printf(g->text, ", graph_name = \"graph_%d\"", t->regions);
  t->regions++;
  put(t, "} : (");
  put_operands(t, &b, TYPES);
  put(t, ") -> (");
  put_result_types(t, &b);
  put(t, ")\n");
  for (int i = 0; i < b.results.count; i++) see(t, b.results.kinds[i], first + i);
  for (int i = 0; i < b.yielded_count && t->memory_count < THREAD_MEMORIES; i++)
    t->memories[t->memory_count++] = first + b.results.count + i;
}

/* ---- the thread's own ----------------------------------------------------------------------------------------------
 */

static void own_statement(thread *t) {
  weft_text *out = t->g->text;
  int memory = t->memories[below(t, (uint32_t)t->memory_count)], a = pick(t, I32), at = chance(t, 50) ? ONE : THREE;
  int channel = (int)below(t, 2 * THREAD_CHANNELS);
  kind k = channel_kinds[channel];
  switch (below(t, 4)) {
  case 0: weft_text_printf(out, "memref.store %%t%d, %%t%d[%%t%d] : memref<?xi32>\n", a, memory, at); break;
  case 1:
    weft_text_printf(out, "%%t%d = memref.load %%t%d[%%t%d] : memref<?xi32>\n", t->next, memory, at);
    see(t, I32, t->next++);
    break;
  case 2:
    weft_text_printf(out, "%%t%d = arith.addi %%t%d, %%t%d : i32\n", t->next, a, pick(t, I32));
    see(t, I32, t->next++);
    break;
  default:
    if (channel < THREAD_CHANNELS) {
      weft_text_printf(out, "%%t%d = dataflow.channel.receive %%t%d : !dataflow.channel<%s>\n", t->next,
                       FIRST_CHANNEL + channel, generator_types[k]);
      see(t, k, t->next++);
    } else if (t->counts[k]) {
      weft_text_printf(out, "dataflow.channel.send %%t%d, %%t%d : !dataflow.channel<%s>\n", FIRST_CHANNEL + channel,
                       pick(t, k), generator_types[k]);
    }
  }
}

static void statements(thread *t, int depth);

/* A body of its own scope; afterwards names seen in it are gone. `yielded` takes a value that is visible at its end. */
static void inner(thread *t, int depth, int *yielded) {
  thread outer = *t;
  statements(t, depth);
  *yielded = pick(t, I32);
  memcpy(t->counts, outer.counts, sizeof t->counts);
  t->memory_count = outer.memory_count;
}

static void put_if(thread *t, int depth) {
  int result = t->next++, yielded;
  bool has_result = chance(t, 50);
  if (has_result) weft_text_printf(t->g->text, "%%t%d = ", result);
  weft_text_printf(t->g->text, "scf.if %%t%d %s{\n", pick(t, I1), has_result ? "-> (i32) " : "");
  for (int lane = 0; lane < (has_result || chance(t, 50) ? 2 : 1); lane++) {
    if (lane) put(t, "} else {\n");
    inner(t, depth - 1, &yielded);
    if (has_result) weft_text_printf(t->g->text, "scf.yield %%t%d : i32\n", yielded);
  }
  put(t, "}\n");
  if (has_result) see(t, I32, result);
}

static void put_switch(thread *t, int depth) {
  int result = t->next++, cases = (int)below(t, 3), yielded;
  bool has_result = chance(t, 50);
  if (has_result) weft_text_printf(t->g->text, "%%t%d = ", result);
  weft_text_printf(t->g->text, "scf.index_switch %%t%d%s\n", pick(t, INDEX), has_result ? " -> i32" : "");
  for (int i = 0; i <= cases; i++) {
    if (i < cases)
      weft_text_printf(t->g->text, "case %d {\n", i);
    else
      put(t, "default {\n");
    inner(t, depth - 1, &yielded);
    if (has_result)
      weft_text_printf(t->g->text, "scf.yield %%t%d : i32\n", yielded);
    else
      put(t, "scf.yield\n");
    put(t, "}\n");
  }
  if (has_result) see(t, I32, result);
}

static void put_for(thread *t, int depth) {
  int result = t->next++, carried = t->next++, induction = t->next++, init = pick(t, I32), yielded;
  bool carries = chance(t, 50);
  if (carries) weft_text_printf(t->g->text, "%%t%d = ", result);
  weft_text_printf(t->g->text, "scf.for %%t%d = %%t%d to %%t%d step %%t%d", induction, ZERO, below(t, 2) ? THREE : ONE,
                   ONE);
  if (carries) weft_text_printf(t->g->text, " iter_args(%%t%d = %%t%d) -> (i32)", carried, init);
  put(t, " {\n");
  int indices = t->counts[INDEX], values = t->counts[I32];
  see(t, INDEX, induction);
  if (carries) see(t, I32, carried);
  inner(t, depth - 1, &yielded);
  t->counts[INDEX] = indices;
  t->counts[I32] = values;
  if (carries) weft_text_printf(t->g->text, "scf.yield %%t%d : i32\n", yielded);
  put(t, "}\n");
  if (carries) see(t, I32, result);
}

/* Two values are carried: the first counts the rounds. */
static void put_while(thread *t, int depth) {
  int results = t->next, before = results + 2, after = before + 2, counted = after + 2, yielded;
  t->next += 8;
  weft_text_printf(t->g->text,
                   "%%t%d, %%t%d = scf.while (%%t%d = %%t%d, %%t%d = %%t%d) : (index, i32) -> (index, i32) {\n",
                   results, results + 1, before, ZERO, before + 1, pick(t, I32));
  int indices = t->counts[INDEX], values = t->counts[I32];
  see(t, INDEX, before);
  see(t, I32, before + 1);
  yielded = before + 1;
  if (chance(t, 60)) inner(t, depth - 1, &yielded);
  weft_text_printf(t->g->text,
                   "%%t%d = arith.addi %%t%d, %%t%d : index\n%%t%d = arith.cmpi ult, %%t%d, %%t%d : index\n"
                   "scf.condition(%%t%d) %%t%d, %%t%d : index, i32\n} do {\n^bb0(%%t%d: index, %%t%d: i32):\n",
                   counted, before, ONE, counted + 1, counted, THREE, counted + 1, counted, yielded, after, after + 1);
  t->counts[INDEX] = indices;
  t->counts[I32] = values;
  see(t, INDEX, after);
  see(t, I32, after + 1);
  yielded = after + 1;
  if (chance(t, 80)) inner(t, depth - 1, &yielded);
  weft_text_printf(t->g->text, "scf.yield %%t%d, %%t%d : index, i32\n}\n", after, yielded);
  t->counts[INDEX] = indices;
  t->counts[I32] = values;
  see(t, INDEX, results);
  see(t, I32, results + 1);
}

static void statements(thread *t, int depth) {
  int count = 1 + (int)below(t, 3);
  for (int i = 0; i < count && t->left > 0; i++) {
    uint32_t roll = below(t, 100);
    t->left--;
    if (depth > 0 && roll < 12)
      put_for(t, depth);
    else if (depth > 0 && roll < 24)
      put_if(t, depth);
    else if (depth > 0 && roll < 36)
      put_while(t, depth);
    else if (depth > 0 && roll < 46)
      put_switch(t, depth);
    else if (roll < 60)
      own_statement(t);
    else
      region(t);
  }
}

void generator_thread(generator *g) {
  thread t = {.g = g, .next = FREE, .left = 8};
  weft_text_puts(
      g->text,
      "module {\ndataflow.thread private @entry domain(#dataflow.thread_domain<dense>)(%t0: i32, %t1: i32, %t2: index, "
      "%t3: memref<?xi32>, %t4: memref<?xi32>, %t5: memref<?xi32>, %t6: !dataflow.channel<i32>, %t7: "
      "!dataflow.channel<index>, %t8: !dataflow.channel<i32>, %t9: !dataflow.channel<f32>) ctrl (%start: none) {\n"
      "%t10 = arith.constant 0 : index\n%t11 = arith.constant 1 : index\n%t12 = arith.constant 3 : index\n"
      "%t13 = arith.constant 5 : i32\n");
  see(&t, I32, 0);
  see(&t, I32, 1);
  see(&t, I32, NUMBER);
  see(&t, INDEX, 2);
  see(&t, INDEX, ONE);
  weft_text_printf(g->text, "%%t%d = arith.cmpi slt, %%t0, %%t1 : i32\n", t.next);
  see(&t, I1, t.next++);
  for (int i = 0; i < 3; i++) t.memories[t.memory_count++] = FIRST_MEMORY + i;
  statements(&t, g->options->depth);
  region(&t);
  weft_text_puts(g->text, "dataflow.thread.yield\n}\n}\n");
}
