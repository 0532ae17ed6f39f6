// counting.mlir, lowered by hand. One partition, since its memories may alias; W and R are the same event after a store.
module {
  dataflow.graph private @counting(%start: none, %limit: i32, %input: memref<?xi32>, %output: memref<?xi32>) -> ()
      attributes {input_segments = array<i32: 1, 0, 2>, result_segments = array<i32: 0, 0, 0>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %place0 = arith.index_cast %zero : i32 to index
    %place1 = arith.index_cast %one : i32 to index
    // rings: execution, both lanes, captures, write and read frontier
    %e = dataflow.carry %more, %start, %last#1 : none
    %old0 = dataflow.carry %more, %zero, %lane0#1 : i32
    %old1 = dataflow.carry %more, %zero, %lane1#1 : i32
    %step = dataflow.invariant %more, %one : i32
    %bound = dataflow.invariant %more, %limit : i32
    %w = dataflow.carry %more, %start, %written#1 : none
    %r = dataflow.carry %more, %start, %settled#1 : none
    // before
    %here = arith.index_cast %old0 : i32 to index
    %may_read:2 = dataflow.sync %e, %w : (none, none) -> (none, none)
    %read, %read_done = dataflow.load %input[%here] %may_read#0 : memref<?xi32>
    %may_write:2 = dataflow.sync %r, %read_done : (none, none) -> (none, none)
    %new0 = arith.addi %old0, %step : i32
    %new1 = arith.addi %old1, %read : i32
    %stored = dataflow.store %output[%here] %new1 %may_write#0 : memref<?xi32>
    %more = arith.cmpi slt, %new0, %bound : i32
    // the false lanes leave, the true lanes go on
    %exit:2 = dataflow.demux %more, %e : (i1, none) -> (none, none)
    %phase, %open = dataflow.gate %more, %e : none
    %close:2 = dataflow.demux %phase, %open : (i1, none) -> (none, none)
    %written:2 = dataflow.demux %more, %stored : (i1, none) -> (none, none)
    %settled:2 = dataflow.demux %more, %stored : (i1, none) -> (none, none)
    %lane0:2 = dataflow.demux %more, %new0 : (i1, i32) -> (i32, i32)
    %lane1:2 = dataflow.demux %more, %new1 : (i1, i32) -> (i32, i32)
    // retirement
    %last:2 = dataflow.demux %phase, %open : (i1, none) -> (none, none)
    %all:2 = dataflow.sync %last#0, %close#0 : (none, none) -> (none, none)
    %retired = dataflow.mux %phase, %all#0, %last#1 : (i1, none, none) -> none
    %ring = dataflow.carry %more, %start, %retired : none
    %over:2 = dataflow.demux %more, %ring : (i1, none) -> (none, none)
    %out_of:2 = dataflow.sync %exit#0, %over#0 : (none, none) -> (none, none)
    // behind the loop
    %may_store:2 = dataflow.sync %out_of#0, %settled#0 : (none, none) -> (none, none)
    %first = dataflow.store %output[%place0] %lane0#0 %may_store#0 : memref<?xi32>
    %second = dataflow.store %output[%place1] %lane1#0 %first : memref<?xi32>
    dataflow.graph.return %second : none
  }
}
