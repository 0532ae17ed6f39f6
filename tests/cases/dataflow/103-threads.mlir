// A producer, a filter and a consumer joined by channels: the filter lets positive numbers pass and adds the first one it
// got to each; the consumer writes what it gets in order.
module {
  dataflow.thread private @producer domain(#dataflow.thread_domain<dense>)(%n: index, %a: memref<?xi32>, %out: !dataflow.channel<i32>) ctrl (%start: none) {
    "loom.spatial_region"(%n, %a, %out) <{operandSegmentSizes = array<i32: 1, 0, 1, 1>, resultSegmentSizes = array<i32: 0, 0>}> ({
    ^bb0(%m: index, %x: memref<?xi32>, %o: !dataflow.channel<i32>):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %m step %c1 {
        %v = memref.load %x[%i] : memref<?xi32>
        dataflow.channel.send %o, %v : !dataflow.channel<i32>
      }
      "loom.spatial_yield"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
    }) {graph_name = "produce", source_maps = []} : (index, memref<?xi32>, !dataflow.channel<i32>) -> ()
    dataflow.thread.yield
  }
  dataflow.thread private @filter domain(#dataflow.thread_domain<dense>)(%n: index, %in: !dataflow.channel<i32>, %out: !dataflow.channel<i32>) ctrl (%start: none) {
    "loom.spatial_region"(%n, %in, %out) <{operandSegmentSizes = array<i32: 1, 1, 0, 1>, resultSegmentSizes = array<i32: 0, 0>}> ({
    ^bb0(%m: index, %i: !dataflow.channel<i32>, %o: !dataflow.channel<i32>):
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : i32
      %first = dataflow.channel.receive %i : !dataflow.channel<i32>
      scf.for %k = %c1 to %m step %c1 {
        %x = dataflow.channel.receive %i : !dataflow.channel<i32>
        %p = arith.cmpi sgt, %x, %zero : i32
        scf.if %p {
          %y = arith.addi %x, %first : i32
          dataflow.channel.send %o, %y : !dataflow.channel<i32>
        }
      }
      dataflow.channel.send %o, %zero : !dataflow.channel<i32>
      "loom.spatial_yield"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
    }) {graph_name = "pass", source_maps = [affine_map<() -> ()>]} : (index, !dataflow.channel<i32>, !dataflow.channel<i32>) -> ()
    dataflow.thread.yield
  }
  dataflow.thread private @consumer domain(#dataflow.thread_domain<dense>)(%b: memref<?xi32>, %in: !dataflow.channel<i32>) ctrl (%start: none) {
    "loom.spatial_region"(%in, %b) <{operandSegmentSizes = array<i32: 0, 1, 1, 0>, resultSegmentSizes = array<i32: 0, 0>}> ({
    ^bb0(%i: !dataflow.channel<i32>, %y: memref<?xi32>):
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0 : i32
      %r = scf.while (%k = %c0) : (index) -> index {
        %v = dataflow.channel.receive %i : !dataflow.channel<i32>
        memref.store %v, %y[%k] : memref<?xi32>
        %more = arith.cmpi ne, %v, %zero : i32
        scf.condition(%more) %k : index
      } do {
      ^bb0(%k: index):
        %next = arith.addi %k, %c1 : index
        scf.yield %next : index
      }
      "loom.spatial_yield"() <{operandSegmentSizes = array<i32: 0, 0>}> : () -> ()
    }) {graph_name = "consume", source_maps = [affine_map<() -> ()>]} : (!dataflow.channel<i32>, memref<?xi32>) -> ()
    dataflow.thread.yield
  }
}
