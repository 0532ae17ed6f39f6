// The sum of the first cells of %input, as it grows, stored in %output: one loop of two lanes.
module {
  dataflow.graph private @counting(%start: none, %limit: i32, %input: memref<?xi32>, %output: memref<?xi32>) -> ()
      attributes {input_segments = array<i32: 1, 0, 2>, result_segments = array<i32: 0, 0, 0>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %out:2 = scf.while (%old0 = %zero, %old1 = %zero) : (i32, i32) -> (i32, i32) {
      %here = arith.index_cast %old0 : i32 to index
      %read = memref.load %input[%here] : memref<?xi32>
      %new0 = arith.addi %old0, %one : i32
      %new1 = arith.addi %old1, %read : i32
      memref.store %new1, %output[%here] : memref<?xi32>
      %more = arith.cmpi slt, %new0, %limit : i32
      scf.condition(%more) %new0, %new1 : i32, i32
    } do {
    ^bb0(%got0: i32, %got1: i32):
      scf.yield %got0, %got1 : i32, i32
    }
    %place0 = arith.index_cast %zero : i32 to index
    memref.store %out#0, %output[%place0] : memref<?xi32>
    %place1 = arith.index_cast %one : i32 to index
    memref.store %out#1, %output[%place1] : memref<?xi32>
    dataflow.graph.return %start : none
  }
}
