#include "program_generator.h"

#include <string.h>

enum { NAMES = 400, KINDS = 4, MEMORY_NAMES = 40 };
typedef enum kind { I32, INDEX, I1, F32 } kind;
static const char *const type_names[KINDS] = {"i32", "index", "i1", "f32"};

typedef struct generator {
  const program_options *options;
  weft_text *text;
  uint64_t random;
  int indent, left, next;
  /* names visible here: values by kind, memories with whether they are static */
  int names[KINDS][NAMES], counts[KINDS];
  struct {
    int name;
    bool fixed; /* memref<8xi32> */
  } memories[MEMORY_NAMES];
  int memory_count;
  bool in_channel, out_channel; /* sites may stand here */
  int budget;                   /* of rounds: halved by each loop */
} generator;

typedef struct scope {
  int counts[KINDS], memory_count;
} scope;

static uint32_t below(generator *g, uint32_t n) { return (uint32_t)(weft_random_next(&g->random) >> 33) % n; }
static bool chance(generator *g, uint32_t percent) { return below(g, 100) < percent; }

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
  if (g->counts[k] == NAMES) g->counts[k]--;
  g->names[k][g->counts[k]++] = name;
  return name;
}

static void constant(generator *g, kind k) {
  line(g);
  int name = g->next++;
  switch (k) {
  case I32: weft_text_printf(g->text, "%%v%d = arith.constant %d : i32\n", name, (int)below(g, 13) - 4); break;
  case INDEX: weft_text_printf(g->text, "%%v%d = arith.constant %d : index\n", name, (int)below(g, 6)); break;
  case I1: weft_text_printf(g->text, "%%v%d = arith.constant %s\n", name, chance(g, 50) ? "true" : "false"); break;
  case F32: weft_text_printf(g->text, "%%v%d = arith.constant %d.5 : f32\n", name, (int)below(g, 9)); break;
  }
  if (g->counts[k] == NAMES) g->counts[k]--;
  g->names[k][g->counts[k]++] = name;
}

/* A visible value, recent ones more often. */
static int value(generator *g, kind k) {
  if (!g->counts[k]) constant(g, k);
  int n = g->counts[k], recent = n < 6 ? n : 6;
  return chance(g, 60) ? g->names[k][n - 1 - (int)below(g, (uint32_t)recent)] : g->names[k][below(g, (uint32_t)n)];
}

/* A value that is at most `most` and not negative. */
static int masked_index(generator *g, int most) {
  int a = value(g, INDEX);
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
  kind k = chance(g, 70) ? I32 : INDEX;
  bool risky = g->options->faults && chance(g, 20);
  int a = value(g, k), b = value(g, k);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.%s %%v%d, %%v%d : %s\n", g->next,
                   risky ? unsafe[below(g, 6)] : safe[below(g, 10)], a, b, type_names[k]);
  define(g, k);
}

static void compare(generator *g) {
  static const char *const predicates[] = {"eq", "ne", "slt", "sle", "sgt", "uge", "ult"};
  kind k = chance(g, 70) ? I32 : INDEX;
  int a = value(g, k), b = value(g, k);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.cmpi %s, %%v%d, %%v%d : %s\n", g->next, predicates[below(g, 7)], a, b,
                   type_names[k]);
  define(g, I1);
}

static void float_op(generator *g) {
  if (chance(g, 30)) {
    int a = value(g, I32);
    line(g);
    weft_text_printf(g->text, "%%v%d = arith.sitofp %%v%d : i32 to f32\n", g->next, a);
    define(g, F32);
    return;
  }
  static const char *const ops[] = {"addf", "subf", "mulf", "maximumf"};
  int a = value(g, F32), b = value(g, F32);
  line(g);
  if (chance(g, 20)) {
    weft_text_printf(g->text, "%%v%d = arith.cmpf olt, %%v%d, %%v%d : f32\n", g->next, a, b);
    define(g, I1);
    return;
  }
  weft_text_printf(g->text, "%%v%d = arith.%s %%v%d, %%v%d : f32\n", g->next, ops[below(g, 4)], a, b);
  define(g, F32);
}

static void convert(generator *g) {
  bool to_index = chance(g, 50);
  int a = value(g, to_index ? I32 : INDEX);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.index_cast %%v%d : %s to %s\n", g->next, a, to_index ? "i32" : "index",
                   to_index ? "index" : "i32");
  define(g, to_index ? INDEX : I32);
}

static void choose(generator *g) {
  int c = value(g, I1), a = value(g, I32), b = value(g, I32);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.select %%v%d, %%v%d, %%v%d : i32\n", g->next, c, a, b);
  define(g, I32);
}

static const char *memory_type(const generator *g, int m) {
  return g->memories[m].fixed ? "memref<8xi32>" : "memref<?xi32>";
}

static void access(generator *g) {
  int m = (int)below(g, (uint32_t)g->memory_count),
      at = g->options->faults && chance(g, 3) ? value(g, INDEX) : masked_index(g, 7);
  if (chance(g, 50)) {
    line(g);
    weft_text_printf(g->text, "%%v%d = memref.load %%m%d[%%v%d] : %s\n", g->next, g->memories[m].name, at,
                     memory_type(g, m));
    define(g, I32);
    return;
  }
  int a = value(g, I32);
  line(g);
  weft_text_printf(g->text, "memref.store %%v%d, %%m%d[%%v%d] : %s\n", a, g->memories[m].name, at, memory_type(g, m));
}

/* An allocation, written all over before anything else sees it, and sometimes a cast of it. */
static void allocate(generator *g) {
  if (g->memory_count + 2 > MEMORY_NAMES) return;
  int name = g->next++, filler = value(g, I32), constants = g->next;
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
  if (!chance(g, 40)) return;
  line(g);
  weft_text_printf(g->text, "%%m%d = memref.cast %%m%d : memref<8xi32> to memref<?xi32>\n", g->next, name);
  g->memories[g->memory_count].fixed = false;
  g->memories[g->memory_count++].name = g->next++;
}

static void site(generator *g) {
  bool receive = g->in_channel && (!g->out_channel || chance(g, 50));
  int a = receive ? 0 : value(g, I32);
  line(g);
  if (receive)
    weft_text_printf(g->text, "%%v%d = dataflow.channel.receive %%cin : !dataflow.channel<i32>\n", define(g, I32));
  else
    weft_text_printf(g->text, "dataflow.channel.send %%cout, %%v%d : !dataflow.channel<i32>\n", a);
}

/* ---- control ---------------------------------------------------------------------------------------------------- */

static void body(generator *g, int depth);

/* Up to three values of any kinds, to be carried or yielded. */
typedef struct bundle {
  kind kinds[3];
  int count;
} bundle;

static bundle pick_bundle(generator *g, int least) {
  bundle b = {.count = least + (int)below(g, (uint32_t)(4 - least))};
  for (int i = 0; i < b.count; i++) b.kinds[i] = chance(g, 60) ? I32 : (kind)below(g, KINDS);
  return b;
}

static void put_types(generator *g, const bundle *b) {
  for (int i = 0; i < b->count; i++) weft_text_printf(g->text, "%s%s", i ? ", " : "", type_names[b->kinds[i]]);
}

/* "scf.yield %v1, %v2 : i32, i32" of visible values. */
static void yield(generator *g, const char *word, const bundle *b) {
  int names[3];
  for (int i = 0; i < b->count; i++) names[i] = value(g, b->kinds[i]);
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

static void see_results(generator *g, int first, const bundle *b) {
  for (int i = 0; i < b->count; i++) {
    kind k = b->kinds[i];
    if (g->counts[k] == NAMES) g->counts[k]--;
    g->names[k][g->counts[k]++] = first + i;
  }
}

static void make_if(generator *g, int depth) {
  int c = value(g, I1), first = g->next;
  bundle b = {.count = 0};
  if (chance(g, 60)) b = pick_bundle(g, 0);
  g->next += b.count;
  bool otherwise = b.count || chance(g, 50);
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
    if (!(lane && chance(g, 30))) body(g, depth - 1);
    yield(g, "scf.yield", &b);
    close_scope(g, s);
    line(g);
    weft_text_puts(g->text, lane == 0 && otherwise ? "} else {\n" : "}\n");
  }
  see_results(g, first, &b);
}

static void make_switch(generator *g, int depth) {
  int a = masked_index(g, 3), first = g->next, cases = (int)below(g, 4);
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
  see_results(g, first, &b);
}

static void make_for(generator *g, int depth) {
  bundle b = pick_bundle(g, 0);
  int inits[3], lower = masked_index(g, 1), upper = masked_index(g, 3);
  for (int i = 0; i < b.count; i++) inits[i] = value(g, b.kinds[i]);
  line(g);
  int step = g->next++, induction = g->next++, first = g->next;
  g->next += 2 * b.count;
  weft_text_printf(g->text, "%%v%d = arith.constant %d : index\n", step, 1 + (int)below(g, 2));
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
  see_results(g, induction, &(bundle){.kinds = {INDEX}, .count = 1});
  see_results(g, first + b.count, &b);
  body(g, depth - 1);
  yield(g, "scf.yield", &b);
  close_scope(g, s);
  line(g);
  weft_text_puts(g->text, "}\n");
  see_results(g, first, &b);
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
  weft_text_printf(g->text, "%%v%d = arith.constant %d : i32\n", most, (int)below(g, 4));
  inits[0] = zero;
  for (int i = 1; i < in.count; i++) inits[i] = value(g, in.kinds[i]);
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
  see_results(g, arguments, &in);
  if (chance(g, 60)) body(g, depth - 1);
  int counted = g->next++, goes_on = g->next++;
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.addi %%v%d, %%v%d : i32\n", counted, arguments, one);
  line(g);
  weft_text_printf(g->text, "%%v%d = arith.cmpi sle, %%v%d, %%v%d : i32\n", goes_on, counted, most);
  int others[3];
  for (int i = 1; i < out.count; i++) others[i] = value(g, out.kinds[i]);
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
    weft_text_printf(g->text, "%s%%v%d: %s", i ? ", " : "", after + i, type_names[out.kinds[i]]);
  weft_text_puts(g->text, "):\n");
  s = open_scope(g);
  see_results(g, after, &out);
  if (chance(g, 80)) body(g, depth - 1);
  int yielded[3];
  for (int i = 1; i < in.count; i++) yielded[i] = value(g, in.kinds[i]);
  line(g);
  weft_text_printf(g->text, "scf.yield %%v%d", after);
  for (int i = 1; i < in.count; i++) weft_text_printf(g->text, ", %%v%d", yielded[i]);
  weft_text_puts(g->text, " : ");
  put_types(g, &in);
  weft_text_puts(g->text, "\n");
  close_scope(g, s);
  line(g);
  weft_text_puts(g->text, "}\n");
  see_results(g, first, &out);
}

static void statement(generator *g, int depth) {
  uint32_t roll = below(g, 100);
  if ((g->in_channel || g->out_channel) && chance(g, 25)) {
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
    constant(g, (kind)below(g, KINDS));
  } else {
    allocate(g);
  }
}

static void body(generator *g, int depth) {
  int count = 1 + (int)below(g, 5);
  for (int i = 0; i < count && g->left > 0; i++) {
    g->left--;
    statement(g, depth);
  }
}

/* ---- whole programs --------------------------------------------------------------------------------------------- */

static void see_inputs(generator *g) {
  see_results(g, 0, &(bundle){.kinds = {I32, I32, INDEX}, .count = 3});
  g->next = 3;
  for (int i = 0; i < 3; i++) {
    g->memories[i].name = g->next++;
    g->memories[i].fixed = false;
  }
  g->memory_count = 3;
}

static void top_body(generator *g) {
  int most = 4 + (int)below(g, 8);
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
  top_body(g);
  int result = value(g, I32);
  weft_text_printf(g->text, "    dataflow.graph.return %%start, %%v%d : none, i32\n  }\n}\n", result);
}

/* One to three regions, one of them perhaps inside a loop of the thread. */
static void thread(generator *g) {
  weft_text_puts(
      g->text,
      "module {\n  dataflow.thread private @entry domain(#dataflow.thread_domain<dense>)(%a: i32, %b: i32, %c: index, "
      "%x: memref<?xi32>, "
      "%y: memref<?xi32>, %z: memref<?xi32>, %in: !dataflow.channel<i32>, %out: !dataflow.channel<i32>) ctrl (%start: "
      "none) {\n"
      "    %t0 = arith.constant 0 : index\n    %t1 = arith.constant 1 : index\n    %t3 = arith.constant 3 : index\n"
      "    %flag = arith.cmpi slt, %a, %b : i32\n");
  int regions = 1 + (int)below(g, 2);
  for (int i = 0; i < regions; i++) {
    int wrap = (int)below(g, 4);
    if (wrap & 1) weft_text_puts(g->text, "    scf.for %i = %t0 to %t3 step %t1 {\n");
    if (wrap & 2) weft_text_puts(g->text, "    scf.if %flag {\n");
    weft_text_puts(g->text,
                   "    \"loom.spatial_region\"(%a, %b, %c, %in, %x, %y, %z, %out) <{operandSegmentSizes = array<i32: "
                   "3, 1, 3, 1>, "
                   "resultSegmentSizes = array<i32: 0, 0>}> ({\n    ^bb0(%v0: i32, %v1: i32, %v2: index, %cin: "
                   "!dataflow.channel<i32>, "
                   "%m3: memref<?xi32>, %m4: memref<?xi32>, %m5: memref<?xi32>, %cout: !dataflow.channel<i32>):\n");
    memset(g->counts, 0, sizeof g->counts);
    g->indent = 6;
    g->in_channel = chance(g, 80);
    g->out_channel = !g->in_channel || chance(g, 80);
    see_inputs(g);
    top_body(g);
    weft_text_printf(g->text,
                     "      \"loom.spatial_yield\"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()\n    }) "
                     "{graph_name = \"graph_%d\", "
                     "source_maps = [affine_map<() -> ()>]} : (i32, i32, index, !dataflow.channel<i32>, memref<?xi32>, "
                     "memref<?xi32>, memref<?xi32>, "
                     "!dataflow.channel<i32>) -> ()\n",
                     i);
    if (wrap & 2) weft_text_puts(g->text, "    }\n");
    if (wrap & 1) weft_text_puts(g->text, "    }\n");
  }
  weft_text_puts(g->text, "    dataflow.thread.yield\n  }\n}\n");
}

void generate_program(const program_options *options, weft_text *text) {
  generator g = {
      .options = options, .text = text, .random = options->seed * 2654435761u + 12345, .left = options->statements};
  if (options->channels)
    thread(&g);
  else
    graph(&g);
}
