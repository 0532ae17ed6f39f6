/* weft/dataflow.h: structured programs and token graphs: the dataflow and loom dialects, the structured interpreter,
 * the token simulator, the lowering from one to the other and the publication of graphs.
 *
 * Values are 64-bit words: integers and index sign-extended (i1 as 0 and 1), floats as the bits of their format,
 * zero-extended; `none` is 0. Source: the graph-launch and while-lowering seeds; design "The dataflow front end". */
#ifndef WEFT_DATAFLOW_H
#define WEFT_DATAFLOW_H

#include "weft/mlir_standard.h"

/* ---- the dialects --------------------------------------------------------------------------------------------- */

/** Rows: identifier, name. Token ops first: what a lowered graph consists of, besides arith and math. */
#define WEFT_DATAFLOW_OPS(ROW)                                                                                         \
  ROW(CONSTANT, "dataflow.constant")                                                                                   \
  ROW(SYNC, "dataflow.sync")                                                                                           \
  ROW(MUX, "dataflow.mux")                                                                                             \
  ROW(DEMUX, "dataflow.demux")                                                                                         \
  ROW(CARRY, "dataflow.carry")                                                                                         \
  ROW(INVARIANT, "dataflow.invariant")                                                                                 \
  ROW(GATE, "dataflow.gate")                                                                                           \
  ROW(STREAM, "dataflow.stream")                                                                                       \
  ROW(LOAD, "dataflow.load")                                                                                           \
  ROW(STORE, "dataflow.store")                                                                                         \
  ROW(GRAPH, "dataflow.graph")                                                                                         \
  ROW(GRAPH_RETURN, "dataflow.graph.return")                                                                           \
  ROW(GRAPH_LAUNCH, "dataflow.graph.launch")                                                                           \
  ROW(THREAD, "dataflow.thread")                                                                                       \
  ROW(THREAD_YIELD, "dataflow.thread.yield")                                                                           \
  ROW(THREAD_LAUNCH, "dataflow.thread.launch")                                                                         \
  ROW(THREAD_WAIT, "dataflow.thread.wait")                                                                             \
  ROW(CHANNEL_SEND, "dataflow.channel.send")                                                                           \
  ROW(CHANNEL_RECEIVE, "dataflow.channel.receive")                                                                     \
  ROW(SPATIAL_REGION, "loom.spatial_region")                                                                           \
  ROW(SPATIAL_YIELD, "loom.spatial_yield")

typedef enum weft_dataflow_op {
  WEFT_DATAFLOW_FIRST_ = WEFT_MLIR_FIRST_CODE - 1,
#define WEFT_ROW(identifier, name) WEFT_DATAFLOW_##identifier,
  WEFT_DATAFLOW_OPS(WEFT_ROW)
#undef WEFT_ROW
} weft_dataflow_op;

/** Registers the dialects dataflow and loom; the standard ones are registered by weft_mlir_register_standard. */
weft_status weft_dataflow_register(weft_mlir_context *context, weft_diag *diag);

#endif
