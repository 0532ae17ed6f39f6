/* The lowering of structured bodies to token graphs: what its files share. */
#ifndef WEFT_DATAFLOW_LOWER_PRIVATE_H
#define WEFT_DATAFLOW_LOWER_PRIVATE_H

#include "weft/dataflow.h"

#include <string.h>

/* What is known of one region of the source before anything is built. */
typedef struct region_facts {
  weft_mlir_value **captures; /* non-memory values defined outside and used inside, in order of first use */
  uint32_t *touched;          /* partitions accessed inside, in order of first access */
  uint32_t *sites;            /* channel bindings with a site inside, in order of first site */
  uint32_t capture_count, touched_count, site_count;
  uint32_t depth; /* 0 is the body */
} region_facts;

/* A channel that a body receives from or sends to. */
typedef struct binding_facts {
  const weft_mlir_value *channel; /* of the source */
  const weft_mlir_type *element;
  bool output;
  weft_mlir_value *tokens; /* of the new graph: what comes in, or what was sent */
} binding_facts;

/* What lowering adds to a block for one binding: where its events come from and go to. */
typedef struct event_port {
  uint32_t binding;
  bool wants_events;       /* whether `events` is needed */
  weft_mlir_value *in;     /* an input's tokens for this part */
  weft_mlir_value *out;    /* an output's tokens from this part */
  weft_mlir_value *events; /* per activation one true an event, then one false */
} event_port;

/* The op names that lowering emits. */
#define EMITTED(ROW)                                                                                                   \
  ROW(constant, "arith.constant")                                                                                      \
  ROW(index_cast, "arith.index_cast")                                                                                  \
  ROW(index_castui, "arith.index_castui")                                                                              \
  ROW(cmpi, "arith.cmpi")                                                                                              \
  ROW(select, "arith.select")                                                                                          \
  ROW(addi, "arith.addi")                                                                                              \
  ROW(muli, "arith.muli")                                                                                              \
  ROW(andi, "arith.andi")                                                                                              \
  ROW(ori, "arith.ori")                                                                                                \
  ROW(xori, "arith.xori")                                                                                              \
  ROW(token, "dataflow.constant")                                                                                      \
  ROW(sync, "dataflow.sync")                                                                                           \
  ROW(mux, "dataflow.mux")                                                                                             \
  ROW(demux, "dataflow.demux")                                                                                         \
  ROW(carry, "dataflow.carry")                                                                                         \
  ROW(invariant, "dataflow.invariant")                                                                                 \
  ROW(gate, "dataflow.gate")                                                                                           \
  ROW(stream, "dataflow.stream")                                                                                       \
  ROW(load, "dataflow.load")                                                                                           \
  ROW(store, "dataflow.store")                                                                                         \
  ROW(graph, "dataflow.graph")                                                                                         \
  ROW(graph_return, "dataflow.graph.return")

typedef struct emitted_names {
#define ROW(identifier, text) const weft_mlir_op_name *identifier;
  EMITTED(ROW)
#undef ROW
} emitted_names;

/* The write frontier and the frontier of writes and reads of one partition. Whether a token comes after the present E
 * is known by number: E gets a new one with each change. */
typedef struct frontier {
  weft_mlir_value *write, *read;
  uint64_t write_after, read_after;
} frontier;

typedef struct lowering {
  weft_mlir_context *context;
  weft_arena *arena;   /* of the new ops */
  weft_arena *scratch; /* until the graph is lowered */
  weft_diag *diag;
  const char *file;
  weft_status status;
  emitted_names names;
  const weft_mlir_type *none, *i1, *i64, *index;
  /* the source */
  weft_mlir_op *source;
  weft_mlir_block *body; /* of the source */
  region_facts *facts;   /* of all regions; a region's number is its op's mark plus its index */
  uint32_t fact_count;
  uint32_t value_count;
  uint32_t *roots; /* of memory values, by mark: the partition */
  uint32_t partition_count;
  binding_facts *bindings;
  uint32_t binding_count;
  /* the new graph */
  weft_mlir_block *target;
  weft_mlir_op *line;    /* the source op being lowered: its place goes to what is emitted */
  weft_mlir_value **map; /* of source values, by mark */
  weft_mlir_value *
      *outermost; /* what stands for arguments and constants of the body, whatever does in an inner region */
  uint32_t stamp, *value_stamps, *partition_stamps; /* for unions of lists */
  uint32_t *numbers;                                /* by value mark: position in a union */
  frontier *frontiers;
  weft_mlir_value *execution, *entry; /* E now, and at the entry of the region being lowered */
  uint64_t number;                    /* of E */
  bool top;                           /* in the body itself, where constants are tokens of the launch */
  event_port *ports;                  /* of the block being lowered, one a binding with a site in it */
  uint32_t port_count;
} lowering;

typedef struct lower_job lower_job;

/* ---- before anything is changed (check.c, facts.c) -------------------------------------------------------------- */

/* Whether the body can be lowered; one message when not. `channels`: sites are allowed. */
bool lower_admit(lowering *l, const weft_mlir_op *graph, bool channels);
/* Whether a graph holds token ops only: then it is left as it is. */
bool lower_is_token_graph(const weft_mlir_op *graph);
/* Fills facts, roots and value numbers for the source. */
bool lower_collect(lowering *l, const lower_job *job);
static inline const region_facts *lower_facts(const lowering *l, const weft_mlir_op *op, uint32_t region) {
  return &l->facts[op->mark + region];
}

/* ---- emission (emit.c) ------------------------------------------------------------------------------------------ */

bool lower_memory(lowering *l); /* records exhausted memory; false */
weft_mlir_op *lower_emit(lowering *l, const weft_mlir_op_name *name, weft_mlir_value *const *operands,
                         uint32_t operand_count, const weft_mlir_type *const *results, uint32_t result_count,
                         const weft_mlir_attribute *properties);
weft_mlir_value *lower_sync(lowering *l, weft_mlir_value *const *tokens, uint32_t count, weft_mlir_op **op);
weft_mlir_op *lower_demux(lowering *l, weft_mlir_value *selector, weft_mlir_value *value, uint32_t lanes);
weft_mlir_value *lower_mux(lowering *l, weft_mlir_value *selector, weft_mlir_value *const *lanes, uint32_t count);
weft_mlir_op *lower_carry(lowering *l, weft_mlir_value *condition, weft_mlir_value *init); /* next is set later */
weft_mlir_value *lower_invariant(lowering *l, weft_mlir_value *condition, weft_mlir_value *init);
weft_mlir_op *lower_gate(lowering *l, weft_mlir_value *condition, weft_mlir_value *value);
weft_mlir_value *lower_binary(lowering *l, const weft_mlir_op_name *name, weft_mlir_value *a, weft_mlir_value *b);
weft_mlir_value *lower_compare(lowering *l, weft_mlir_cmpi predicate, weft_mlir_value *a, weft_mlir_value *b);
weft_mlir_value *lower_select(lowering *l, weft_mlir_value *condition, weft_mlir_value *yes, weft_mlir_value *no);
weft_mlir_value *lower_cast(lowering *l, const weft_mlir_op_name *name, weft_mlir_value *value,
                            const weft_mlir_type *type);
/* One token an activation of the present region. */
weft_mlir_value *lower_constant(lowering *l, const weft_mlir_attribute *value);
weft_mlir_value *lower_number(lowering *l, const weft_mlir_type *type, int64_t value);

/* ---- regions (lower.c, branches.c, loops.c, events.c) -------------------------------------------------------------
 */

/* Makes `token` the execution permission. */
static inline void lower_set_execution(lowering *l, weft_mlir_value *token) {
  l->execution = token;
  l->number++;
}
static inline void lower_set_frontier(lowering *l, uint32_t p, weft_mlir_value *write, weft_mlir_value *read) {
  l->frontiers[p] = (frontier){.write = write, .read = read};
}
/* The value that stands for a source value here. */
static inline weft_mlir_value *lower_value(const lowering *l, const weft_mlir_value *value) {
  return l->map[value->mark];
}

/* What a region hands to its block and gets back. */
typedef struct inner_region {
  const weft_mlir_block *block;
  const region_facts *facts;
  weft_mlir_value *execution;
  weft_mlir_value *const *captures; /* one for each of facts->captures */
  event_port *ports;                /* one for each of facts->sites */
} inner_region;

/* Lowers the ops of a region's block with E, captures and ports as given; the caller has set the frontiers and mapped
 * the block's arguments. Afterwards E and the frontiers are what they are at its end; the captures stay mapped to what
 * stood for them inside, for the caller to read the terminator, and to put back with lower_restore. */
bool lower_region(lowering *l, const inner_region *region);
void lower_restore(lowering *l, const region_facts *facts, weft_mlir_value *const *values);
/* Bindings with a site in `op`, itself or anywhere inside, in order of first site. */
bool lower_op_sites(lowering *l, const weft_mlir_op *op, const uint32_t **sites, uint32_t *count);
bool lower_block(lowering *l, const weft_mlir_block *block);
bool lower_if(lowering *l, const weft_mlir_op *op, event_port *ports);
bool lower_index_switch(lowering *l, const weft_mlir_op *op, event_port *ports);
bool lower_for(lowering *l, const weft_mlir_op *op, event_port *ports);
bool lower_while(lowering *l, const weft_mlir_op *op, event_port *ports);

/* The events of the block being lowered. */
typedef struct block_events block_events;
/* Prepares ring and lanes for each port of the present block. */
block_events *lower_events_begin(lowering *l, const weft_mlir_block *block);
/* The ports that an op's part gets, one for each binding with a site in it, in the order of `sites`. */
event_port *lower_events_item(lowering *l, block_events *events, const uint32_t *sites, uint32_t count);
void lower_events_done(lowering *l, block_events *events, const event_port *item, uint32_t count);
/* Closes the rings; fills `events` and `out` of the block's ports. */
bool lower_events_end(lowering *l, block_events *events);
bool lower_receive(lowering *l, const weft_mlir_op *op, event_port *port);
bool lower_send(lowering *l, const weft_mlir_op *op, event_port *port);

/* A token stream of this type on which nothing ever comes. */
weft_mlir_value *lower_never(lowering *l, const weft_mlir_type *type);

/* A branch or loop splits its ports over the regions of its op and joins them again. */
typedef struct split_ports {
  event_port *parts;      /* [region * count + port]; of regions without a site only `events` may be set */
  bool *has;              /* the same index: whether the region has a site of the port */
  uint32_t *sharers;      /* of each port: how many regions have a site */
  weft_mlir_op **demuxes; /* of inputs that several regions share: the selector is set at the end */
  event_port *outer;
  uint32_t regions, count;
} split_ports;

split_ports *lower_split(lowering *l, const weft_mlir_op *op, event_port *ports);
/* The ports of region `index`, in the order of its sites; lane of the op's selector. */
event_port *lower_split_region(lowering *l, split_ports *split, const weft_mlir_op *op, uint32_t index, uint32_t lane);
/* Takes back what the region filled in; where it has no site, one false an activation, on `execution`, is its events.
 */
bool lower_split_take(lowering *l, split_ports *split, const weft_mlir_op *op, uint32_t index, const event_port *ports,
                      weft_mlir_value *execution);
bool lower_join_lanes(lowering *l, split_ports *split, weft_mlir_value *selector, uint32_t lanes,
                      const uint32_t *lane_region, weft_mlir_op *execution_lanes);
bool lower_join_for(lowering *l, split_ports *split, weft_mlir_value *phase);
bool lower_join_while(lowering *l, split_ports *split, weft_mlir_value *selector);

/* ---- expansion (expand.c) ------------------------------------------------------------------------------------------
 */

/* Replaces each memref.copy below `graph` by loops of loads and stores; false without memory. */
bool lower_expand_copies(weft_mlir_context *context, weft_arena *arena, weft_mlir_op *graph);
bool lower_has_copies(const weft_mlir_op *graph);

/* Lowers one body into a new graph: `shell` is an empty dataflow.graph with its entry block, whose arguments stand for
 * the source block's by `arguments[i]` (NULL where a channel was), and which gets ops and return. */
struct lower_job {
  weft_mlir_op *source; /* graph, function or spatial region */
  weft_mlir_op *shell;
  weft_mlir_value **arguments; /* one for each argument of the source's block */
  const bool *no_alias;        /* the same index: memory inputs known to be apart; may be NULL */
  const bool *outputs;         /* the same index: channels that are sent to; may be NULL */
  uint32_t value_results,
      stream_results; /* of the terminator's operands the first are values; streams come from sends */
};
bool lower_body(lowering *l, const lower_job *job);

#endif
