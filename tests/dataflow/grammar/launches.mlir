// What publishing leaves of three threads: one sends, one receives and stores, one launches in a loop.
module {
  dataflow.graph private @send_graph(%start: none, %payload: i32, %out: !dataflow.channel<i32>) -> ()
      attributes {input_segments = array<i32: 1, 1, 0>, result_segments = array<i32: 0, 0, 0>} {
    dataflow.graph.return %start : none
  }
  dataflow.graph private @store_graph(%start: none, %message: i32, %target: memref<4xi32>) -> (i32)
      attributes {input_segments = array<i32: 0, 1, 1>, result_segments = array<i32: 1, 0, 0>} {
    %zero = arith.constant 0 : index
    %done = dataflow.store %target[%zero] %message %start : memref<4xi32>
    dataflow.graph.return %done, %message : none, i32
  }
  dataflow.thread private @sender domain(#dataflow.thread_domain<dense>)(%value: i32, %chan: !dataflow.channel<i32>)
      ctrl (%start: none) {
    %sent = "dataflow.graph.launch"(%start, %value, %chan) <{callee = @send_graph, source_maps = [],
        operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>, resultSegmentSizes = array<i32: 0, 0, 1>}>
        : (none, i32, !dataflow.channel<i32>) -> none
    dataflow.thread.yield %sent : none
  }
  dataflow.thread private @receiver domain(#dataflow.thread_domain<dense>)(%mem: memref<4xi32>,
      %chan: !dataflow.channel<i32>) ctrl (%start: none) {
    %got, %stored = "dataflow.graph.launch"(%start, %chan, %mem) <{callee = @store_graph,
        source_maps = [affine_map<() -> ()>],
        operandSegmentSizes = array<i32: 1, 0, 1, 1, 0>, resultSegmentSizes = array<i32: 1, 0, 1>}>
        : (none, !dataflow.channel<i32>, memref<4xi32>) -> (i32, none)
    dataflow.thread.yield %stored : none
  }
  dataflow.thread private @looper domain(#dataflow.thread_domain<dense>)(%value: i32, %chan: !dataflow.channel<i32>)
      ctrl (%start: none) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %all = scf.for %i = %c0 to %c4 step %c1 iter_args(%chain = %start) -> (none) {
      %sent = "dataflow.graph.launch"(%chain, %value, %chan) <{callee = @send_graph, source_maps = [],
          operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>, resultSegmentSizes = array<i32: 0, 0, 1>}>
          : (none, i32, !dataflow.channel<i32>) -> none
      scf.yield %sent : none
    }
    dataflow.thread.yield %all : none
  }
}
