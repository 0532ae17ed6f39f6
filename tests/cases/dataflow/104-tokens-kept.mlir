// A graph that ends with its invariant open: the next launch goes on where the last one stopped.
module {
  dataflow.graph private @kept(%start: none, %x: i32, %cond: i1) -> (i32)
      attributes {input_segments = array<i32: 1, 1, 0>, result_segments = array<i32: 0, 1, 0>} {
    %o = dataflow.invariant %cond, %x : i32
    "dataflow.graph.return"(%o, %start) <{operandSegmentSizes = array<i32: 0, 1, 0, 1>}> : (i32, none) -> ()
  }
}
