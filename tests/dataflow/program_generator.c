#include "generator_private.h"

#include <string.h>

const char *const generator_types[GENERATOR_KINDS] = {"i32", "index", "i1", "f32"};

typedef struct scope {
  int counts[GENERATOR_KINDS], memory_count;
} scope;

static scope open_scope(generator *g) {
  scope s = {.memory_count = g->memory_count};
  memcpy(s.counts, g->counts, sizeof s.counts);
  g->indent += 2;
  return s;
}

static void close_scope(generator *g, scope s) {
  memcpy(g->counts, s.counts, sizeof s.counts);
  g->memory_count = s.memory_count;
  g->indent -= 2;
}

static void line(generator *g) { weft_text_printf(g->text, "%*s", g->indent, ""); }

static int define(generator *g, kind k) {
  int name = g->next++;
  if (g->counts[k] == GENERATOR_NAMES) g->counts[k]--;
  g->names[k][g->counts[k]++] = name;
  return name;
}

static void constant(generator *g, kind k) {
  line(g);
  int name = g->next++;
  switch (k) {
  case I32:
    weft_text_printf(g->text, "%%v%d = arith.constant %d : i32\n", name, (int)generator_below(g, 13) - 4);
    break;
  case INDEX: weft_text_printf(g->text, "%%v%d = arith.constant %d : index\n", name, (int)generator_below(g, 6)); break;
  case I1:
    weft_text_printf(g->text, "%%v%d = arith.constant %s\n", name, generator_chance(g, 50) ? "true" : "false");
    break;
  case F32: weft_text_printf(g->text, "%%v%d = arith.constant %d.5 : f32\n", name, (int)generator_below(g, 9)); break;
  }
  if (g->counts[k] == GENERATOR_NAMES) g->counts[k]--;
  g->names[k][g->counts[k]++] = name;
}

int generator_value(generator *g, kind k) {
  if (!g->counts[k]) constant(g, k);
  int n = g->counts[k], recent = n < 6 ? n : 6;
  return generator_chance(g, 60) ? g->names[k][n - 1 - (int)generator_below(g, (uint32_t)recent)]
                                 : g->names[k][generator_below(g, (uint32_t)n)];
}

/* A value that is at most `most` and not negative. */
static int masked_index(generator *g, int most) {
  int a = generator_value(g, INDEX);
  line(g);
  int mask = g->next++;
  weft_text_printf(g->text, "%%v%d = arith.constant %d : index\n", mask, most);
  line(g);
  int name = define(g, INDEX);
  weft_text_printf(g->text, "%%v%d = arith.andi %%v%d, %%v%d : index\n", name, a, mask);
  return name;
}

/* ---- plain statements ------------------------------------------------------------------------------------------- */

static void integer_op(generator *g) {
  static const char *const safe[] = {"addi", "subi", "muli", "andi", "ori", "xori", "maxsi", "minui", "addi", "subi"};
  static const char *const unsafe[] = {"divsi", "remui", "shli", "shrsi", "floordivsi", "ceildivui"};
  kind k = generator_chance(g, 70) ? I32 : INDEX;
  bool risky = g->options->faults && generator_chance(g, 20);
  int a = generator_value(g, k), b = generator_value(g, k);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.%s %%v%d, %%v%d : %s\n", g->next,
                   risky ? unsafe[generator_below(g, 6)] : safe[generator_below(g, 10)], a, b, generator_types[k]);
  define(g, k);
}

static void compare(generator *g) {
  static const char *const predicates[] = {"eq", "ne", "slt", "sle", "sgt", "uge", "ult"};
  kind k = generator_chance(g, 70) ? I32 : INDEX;
  int a = generator_value(g, k), b = generator_value(g, k);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.cmpi %s, %%v%d, %%v%d : %s\n", g->next, predicates[generator_below(g, 7)], a,
                   b, generator_types[k]);
  define(g, I1);
}

static void float_op(generator *g) {
  if (generator_chance(g, 30)) {
    int a = generator_value(g, I32);
    line(g);
    weft_text_printf(g->text, "%%v%d = arith.sitofp %%v%d : i32 to f32\n", g->next, a);
    define(g, F32);
    return;
  }
  static const char *const ops[] = {"addf", "subf", "mulf", "maximumf"};
  int a = generator_value(g, F32), b = generator_value(g, F32);
  line(g);
  if (generator_chance(g, 20)) {
    weft_text_printf(g->text, "%%v%d = arith.cmpf olt, %%v%d, %%v%d : f32\n", g->next, a, b);
    define(g, I1);
    return;
  }
  weft_text_printf(g->text, "%%v%d = arith.%s %%v%d, %%v%d : f32\n", g->next, ops[generator_below(g, 4)], a, b);
  define(g, F32);
}

static void convert(generator *g) {
  bool to_index = generator_chance(g, 50);
  int a = generator_value(g, to_index ? I32 : INDEX);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.index_cast %%v%d : %s to %s\n", g->next, a, to_index ? "i32" : "index",
                   to_index ? "index" : "i32");
  define(g, to_index ? INDEX : I32);
}

static void choose(generator *g) {
  int c = generator_value(g, I1), a = generator_value(g, I32), b = generator_value(g, I32);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.select %%v%d, %%v%d, %%v%d : i32\n", g->next, c, a, b);
  define(g, I32);
}

static const char *memory_type(const generator *g, int m) {
  return g->memories[m].fixed ? "memref<8xi32>" : "memref<?xi32>";
}

static void access(generator *g) {
  if (!g->memory_count) return;
  int m = (int)generator_below(g, (uint32_t)g->memory_count),
      at = g->options->faults && generator_chance(g, 3) ? generator_value(g, INDEX) : masked_index(g, 7);
  if (generator_chance(g, 50)) {
    line(g);
    weft_text_printf(g->text, "%%v%d = memref.load %%m%d[%%v%d] : %s\n", g->next, g->memories[m].name, at,
                     memory_type(g, m));
    define(g, I32);
    return;
  }
  int a = generator_value(g, I32);
  line(g);
  weft_text_printf(g->text, "memref.store %%v%d, %%m%d[%%v%d] : %s\n", a, g->memories[m].name, at, memory_type(g, m));
}

/* An allocation, written all over before anything else sees it, and sometimes a cast of it. */
static void allocate(generator *g) {
  if (g->memory_count + 2 > GENERATOR_MEMORIES) return;
  int name = g->next++, filler = generator_value(g, I32), constants = g->next;
  g->next += 4;
  line(g);
  weft_text_printf(g->text, "%%m%d = memref.alloc() : memref<8xi32>\n", name);
  for (int i = 0; i < 3; i++) {
    line(g);
    weft_text_printf(g->text, "%%v%d = arith.constant %d : index\n", constants + i, i == 0 ? 0 : i == 1 ? 8 : 1);
  }
  line(g);
  weft_text_printf(g->text,
                   "scf.for %%v%d = %%v%d to %%v%d step %%v%d { memref.store %%v%d, %%m%d[%%v%d] : memref<8xi32> }\n",
                   constants + 3, constants, constants + 1, constants + 2, filler, name, constants + 3);
  g->memories[g->memory_count].fixed = true;
  g->memories[g->memory_count++].name = name;
  if (!generator_chance(g, 40)) return;
  line(g);
  weft_text_printf(g->text, "%%m%d = memref.cast %%m%d : memref<8xi32> to memref<?xi32>\n", g->next, name);
  g->memories[g->memory_count].fixed = false;
  g->memories[g->memory_count++].name = g->next++;
}

static void site(generator *g) {
  uint32_t which = generator_below(g, (uint32_t)(g->in_count + g->out_count)), ins = (uint32_t)g->in_count;
  const generator_channel *c = which < ins ? &g->in[which] : &g->out[which - ins];
  int a = which < ins ? 0 : generator_value(g, c->element);
  line(g);
  if (which < ins)
    weft_text_printf(g->text, "%%v%d = dataflow.channel.receive %%i%d : !dataflow.channel<%s>\n", define(g, c->element),
                     c->name, generator_types[c->element]);
  else
    weft_text_printf(g->text, "dataflow.channel.send %%o%d, %%v%d : !dataflow.channel<%s>\n", c->name, a,
                     generator_types[c->element]);
}

/* ---- control ---------------------------------------------------------------------------------------------------- */

static void body(generator *g, int depth);

static bundle pick_bundle(generator *g, int least) {
  bundle b = {.count = least + (int)generator_below(g, (uint32_t)(4 - least))};
  for (int i = 0; i < b.count; i++)
    b.kinds[i] = generator_chance(g, 60) ? I32 : (kind)generator_below(g, GENERATOR_KINDS);
  return b;
}

static void put_types(generator *g, const bundle *b) {
  for (int i = 0; i < b->count; i++) weft_text_printf(g->text, "%s%s", i ? ", " : "", generator_types[b->kinds[i]]);
}

/* "scf.yield %v1, %v2 : i32, i32" of visible values. */
static void yield(generator *g, const char *word, const bundle *b) {
  int names[3];
  for (int i = 0; i < b->count; i++) names[i] = generator_value(g, b->kinds[i]);
  line(g);
  weft_text_puts(g->text, word);
  for (int i = 0; i < b->count; i++) weft_text_printf(g->text, "%s%%v%d", i ? ", " : " ", names[i]);
  if (b->count) {
    weft_text_puts(g->text, " : ");
    put_types(g, b);
  }
  weft_text_puts(g->text, "\n");
}

static void put_result(generator *g, int first, const bundle *b) {
  if (b->count == 1) weft_text_printf(g->text, "%%v%d = ", first);
  if (b->count <= 1) return;
  for (int i = 0; i < b->count; i++) weft_text_printf(g->text, "%s%%v%d", i ? ", " : "", first + i);
  weft_text_puts(g->text, " = ");
}

void generator_see(generator *g, int first, const bundle *b) {
  for (int i = 0; i < b->count; i++) {
    kind k = b->kinds[i];
    if (g->counts[k] == GENERATOR_NAMES) g->counts[k]--;
    g->names[k][g->counts[k]++] = first + i;
  }
}

static void make_if(generator *g, int depth) {
  int c = generator_value(g, I1), first = g->next;
  bundle b = {.count = 0};
  if (generator_chance(g, 60)) b = pick_bundle(g, 0);
  g->next += b.count;
  bool otherwise = b.count || generator_chance(g, 50);
  line(g);
  put_result(g, first, &b);
  weft_text_printf(g->text, "scf.if %%v%d ", c);
  if (b.count) {
    weft_text_puts(g->text, "-> (");
    put_types(g, &b);
    weft_text_puts(g->text, ") ");
  }
  weft_text_puts(g->text, "{\n");
  for (int lane = 0; lane < 1 + otherwise; lane++) {
    scope s = open_scope(g);
    if (!(lane && generator_chance(g, 30))) body(g, depth - 1);
    yield(g, "scf.yield", &b);
    close_scope(g, s);
    line(g);
    weft_text_puts(g->text, lane == 0 && otherwise ? "} else {\n" : "}\n");
  }
  generator_see(g, first, &b);
}

static void make_switch(generator *g, int depth) {
  int a = masked_index(g, 3), first = g->next, cases = (int)generator_below(g, 4);
  bundle b = pick_bundle(g, 0);
  g->next += b.count;
  line(g);
  put_result(g, first, &b);
  weft_text_printf(g->text, "scf.index_switch %%v%d", a);
  if (b.count) {
    weft_text_puts(g->text, " -> ");
    put_types(g, &b);
  }
  weft_text_puts(g->text, "\n");
  for (int i = 0; i <= cases; i++) {
    line(g);
    if (i < cases)
      weft_text_printf(g->text, "case %d {\n", i);
    else
      weft_text_puts(g->text, "default {\n");
    scope s = open_scope(g);
    body(g, depth - 1);
    yield(g, "scf.yield", &b);
    close_scope(g, s);
    line(g);
    weft_text_puts(g->text, "}\n");
  }
  generator_see(g, first, &b);
}

static void make_for(generator *g, int depth) {
  bundle b = pick_bundle(g, 0);
  int inits[3], lower = masked_index(g, 1), upper = masked_index(g, 3);
  for (int i = 0; i < b.count; i++) inits[i] = generator_value(g, b.kinds[i]);
  line(g);
  int step = g->next++, induction = g->next++, first = g->next;
  g->next += 2 * b.count;
  weft_text_printf(g->text, "%%v%d = arith.constant %d : index\n", step, 1 + (int)generator_below(g, 2));
  line(g);
  put_result(g, first, &b);
  weft_text_printf(g->text, "scf.for %%v%d = %%v%d to %%v%d step %%v%d", induction, lower, upper, step);
  if (b.count) {
    weft_text_puts(g->text, " iter_args(");
    for (int i = 0; i < b.count; i++)
      weft_text_printf(g->text, "%s%%v%d = %%v%d", i ? ", " : "", first + b.count + i, inits[i]);
    weft_text_puts(g->text, ") -> (");
    put_types(g, &b);
    weft_text_puts(g->text, ")");
  }
  weft_text_puts(g->text, " {\n");
  scope s = open_scope(g);
  generator_see(g, induction, &(bundle){.kinds = {INDEX}, .count = 1});
  generator_see(g, first + b.count, &b);
  body(g, depth - 1);
  yield(g, "scf.yield", &b);
  close_scope(g, s);
  line(g);
  weft_text_puts(g->text, "}\n");
  generator_see(g, first, &b);
}

/* The first value carried counts the rounds; condition arguments are another bundle than the inits. */
static void make_while(generator *g, int depth) {
  bundle in = pick_bundle(g, 1), out = pick_bundle(g, 1);
  int inits[3], first = g->next;
  in.kinds[0] = out.kinds[0] = I32;
  int results = g->next, arguments = results + out.count, after = arguments + in.count;
  g->next = after + out.count;
  int zero = g->next++, one = g->next++, most = g->next++;
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.constant 0 : i32\n", zero);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.constant 1 : i32\n", one);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.constant %d : i32\n", most, (int)generator_below(g, 4));
  inits[0] = zero;
  for (int i = 1; i < in.count; i++) inits[i] = generator_value(g, in.kinds[i]);
  line(g);
  put_result(g, first, &out);
  weft_text_puts(g->text, "scf.while (");
  for (int i = 0; i < in.count; i++)
    weft_text_printf(g->text, "%s%%v%d = %%v%d", i ? ", " : "", arguments + i, inits[i]);
  weft_text_puts(g->text, ") : (");
  put_types(g, &in);
  weft_text_puts(g->text, ") -> (");
  put_types(g, &out);
  weft_text_puts(g->text, ") {\n");
  scope s = open_scope(g);
  generator_see(g, arguments, &in);
  if (generator_chance(g, 60)) body(g, depth - 1);
  int counted = g->next++, goes_on = g->next++;
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.addi %%v%d, %%v%d : i32\n", counted, arguments, one);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.cmpi sle, %%v%d, %%v%d : i32\n", goes_on, counted, most);
  int others[3];
  for (int i = 1; i < out.count; i++) others[i] = generator_value(g, out.kinds[i]);
  line(g);
  weft_text_printf(g->text, "scf.condition(%%v%d) %%v%d", goes_on, counted);
  for (int i = 1; i < out.count; i++) weft_text_printf(g->text, ", %%v%d", others[i]);
  weft_text_puts(g->text, " : ");
  put_types(g, &out);
  weft_text_puts(g->text, "\n");
  close_scope(g, s);
  line(g);
  weft_text_puts(g->text, "} do {\n");
  line(g);
  weft_text_puts(g->text, "^bb0(");
  for (int i = 0; i < out.count; i++)
    weft_text_printf(g->text, "%s%%v%d: %s", i ? ", " : "", after + i, generator_types[out.kinds[i]]);
  weft_text_puts(g->text, "):\n");
  s = open_scope(g);
  generator_see(g, after, &out);
  if (generator_chance(g, 80)) body(g, depth - 1);
  int yielded[3];
  for (int i = 1; i < in.count; i++) yielded[i] = generator_value(g, in.kinds[i]);
  line(g);
  weft_text_printf(g->text, "scf.yield %%v%d", after);
  for (int i = 1; i < in.count; i++) weft_text_printf(g->text, ", %%v%d", yielded[i]);
  weft_text_puts(g->text, " : ");
  put_types(g, &in);
  weft_text_puts(g->text, "\n");
  close_scope(g, s);
  line(g);
  weft_text_puts(g->text, "}\n");
  generator_see(g, first, &out);
}

static void statement(generator *g, int depth) {
  uint32_t roll = generator_below(g, 100);
  if (g->in_count + g->out_count && generator_chance(g, 25)) {
    site(g);
  } else if (depth > 0 && roll < 34) {
    if (roll < 10)
      make_if(g, depth);
    else if (roll < 20)
      make_for(g, depth);
    else if (roll < 29)
      make_while(g, depth);
    else
      make_switch(g, depth);
  } else if (roll < 60) {
    access(g);
  } else if (roll < 75) {
    integer_op(g);
  } else if (roll < 82) {
    compare(g);
  } else if (roll < 88) {
    convert(g);
  } else if (roll < 92) {
    choose(g);
  } else if (roll < 96) {
    float_op(g);
  } else if (roll < 98) {
    constant(g, (kind)generator_below(g, GENERATOR_KINDS));
  } else {
    allocate(g);
  }
}

static void body(generator *g, int depth) {
  int count = 1 + (int)generator_below(g, 5);
  for (int i = 0; i < count && g->left > 0; i++) {
    g->left--;
    statement(g, depth);
  }
}

/* ---- whole programs --------------------------------------------------------------------------------------------- */

static void see_inputs(generator *g) {
  generator_see(g, 0, &(bundle){.kinds = {I32, I32, INDEX}, .count = 3});
  g->next = 3;
  for (int i = 0; i < 3; i++) {
    g->memories[i].name = g->next++;
    g->memories[i].fixed = false;
  }
  g->memory_count = 3;
}

void generator_body(generator *g) {
  int most = 4 + (int)generator_below(g, 8);
  for (int i = 0; i < most && g->left > 0; i++) {
    g->left--;
    statement(g, g->options->depth);
  }
}

static void graph(generator *g) {
  const char *apart = g->options->no_alias ? " {llvm.noalias}" : "";
  weft_text_printf(g->text,
                   "module {\n  dataflow.graph private @entry(%%start: none, %%v0: i32, %%v1: i32, %%v2: index, %%m3: "
                   "memref<?xi32>%s, %%m4: memref<?xi32>%s, "
                   "%%m5: memref<?xi32>) -> (i32)\n      attributes {input_segments = array<i32: 3, 0, 3>, "
                   "result_segments = array<i32: 1, 0, 0>} {\n",
                   apart, apart);
  g->indent = 4;
  see_inputs(g);
  generator_body(g);
  int result = generator_value(g, I32);
  weft_text_printf(g->text, "    dataflow.graph.return %%start, %%v%d : none, i32\n  }\n}\n", result);
}

void generate_program(const program_options *options, weft_text *text) {
  generator g = {
      .options = options, .text = text, .random = options->seed * 2654435761u + 12345, .left = options->statements};
  if (options->channels)
    generator_thread(&g);
  else
    graph(&g);
}
