/* A token graph as actors and queues: one queue for each use of a value. */
#ifndef WEFT_DATAFLOW_RUN_SIMULATE_PRIVATE_H
#define WEFT_DATAFLOW_RUN_SIMULATE_PRIVATE_H

#include "compute.h"

typedef enum actor_kind {
  ACTOR_SOURCE, /* an input or a constant: hands on what `feed` holds */
  ACTOR_COMPUTE,
  ACTOR_CONSTANT,
  ACTOR_SYNC,
  ACTOR_MUX,
  ACTOR_DEMUX,
  ACTOR_CARRY,     /* state: 1 after the initial value */
  ACTOR_INVARIANT, /* state: 1 while it holds a value */
  ACTOR_GATE,      /* state: 1 when open */
  ACTOR_STREAM,    /* state: 1 while counting */
  ACTOR_LOAD,
  ACTOR_STORE,
  ACTOR_SINK, /* a result: collects what comes */
} actor_kind;

typedef struct queue {
  uint64_t *words;
  uint32_t mask; /* of the ring: its size less one */
  uint32_t head, count;
  uint32_t capacity; /* UINT32_MAX: unbounded */
  uint32_t producer, consumer;
} queue;

typedef struct actor {
  actor_kind kind;
  uint32_t state;
  uint32_t in, in_count;   /* queues inputs[in...] */
  uint32_t out, out_count; /* result r goes to queues fan[begins[out + r]] up to fan[begins[out + r + 1]] */
  uint32_t memory;         /* of a load or store */
  uint32_t detail;         /* sync and so on: none; source and sink: number among them */
  uint64_t held;           /* a constant's or invariant's value; the induction value */
  uint64_t left, step;     /* of a stream */
  compute compute;
  const weft_mlir_op *op;
} actor;

typedef enum source_kind { SOURCE_START, SOURCE_VALUE, SOURCE_STREAM, SOURCE_CONSTANT } source_kind;

typedef struct source {
  source_kind kind;
  uint32_t actor;
  uint32_t input;       /* of the graph, start aside */
  weft_channel waiting; /* tokens of a start, value or constant that found no room yet */
  weft_channel *feed;   /* `waiting`, or the channel a stream is bound to */
  uint64_t word;        /* of a constant */
} source;

typedef enum sink_kind { SINK_VALUE, SINK_STREAM, SINK_COMPLETE } sink_kind;

typedef struct sink {
  sink_kind kind;
  uint32_t index;     /* among those of its kind */
  uint64_t came;      /* tokens of this launch */
  uint64_t word;      /* the first of them */
  weft_channel *into; /* of a stream */
} sink;

typedef struct memory {
  weft_memory *buffer;
  uint32_t input; /* of the graph, or UINT32_MAX: an allocation */
  const weft_mlir_op *alloc;
  weft_memory own;
} memory;

struct weft_simulator {
  weft_arena *arena;
  const weft_mlir_op *graph;
  const char *file;
  weft_simulator_options options;
  actor *actors;
  uint32_t actor_count;
  queue *queues;
  uint32_t queue_count;
  uint32_t *inputs; /* of all actors */
  uint32_t *begins, *fan;
  source *sources;
  uint32_t source_count;
  sink *sinks;
  uint32_t sink_count;
  memory *memories;
  uint32_t memory_count;
  uint32_t missing; /* completions and values of this launch that have not come */
  /* Which actors may be able to fire: a bit each, a bit for each word of those, or a list when the order is random. */
  uint64_t *ready, *ready_words;
  uint32_t *list, list_count;
  uint64_t random;
  bool bad_memory;
  weft_report report;
  weft_text text;
};

weft_status simulate_compile(weft_simulator *s, weft_diag *diag);
/* Fires one actor if it can: 1 fired, 0 not, -1 faulted with report.fault set. */
int simulate_fire(weft_simulator *s, uint32_t index);
void simulate_mark(weft_simulator *s, uint32_t index);
/* Describes what hinders, into the report. */
weft_run_state simulate_stuck(weft_simulator *s, bool waiting);
/* Looks for tokens and states left behind; DONE or FAULT. */
weft_run_state simulate_leftovers(weft_simulator *s);

static inline bool simulate_random(const weft_simulator *s) { return s->options.order == WEFT_ORDER_RANDOM; }

#endif
