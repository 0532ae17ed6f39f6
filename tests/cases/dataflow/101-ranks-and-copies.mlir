// Two-dimensional memories, a copy of a whole one, an allocation that is written before it is read, and a cast.
module {
  dataflow.graph private @ranks(%start: none, %n: index, %a: memref<3x4xi32>, %b: memref<?x4xi32>) -> (i32)
      attributes {input_segments = array<i32: 1, 0, 2>, result_segments = array<i32: 1, 0, 0>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant 0 : i32
    %t = memref.alloc() : memref<3x4xi32>
    memref.copy %a, %t : memref<3x4xi32> to memref<3x4xi32>
    %d = memref.cast %t : memref<3x4xi32> to memref<?x4xi32>
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero) -> (i32) {
      %r = scf.for %j = %c0 to %c3 step %c1 iter_args(%y = %x) -> (i32) {
        %v = memref.load %d[%i, %j] : memref<?x4xi32>
        %w = arith.addi %y, %v : i32
        memref.store %w, %b[%i, %j] : memref<?x4xi32>
        scf.yield %w : i32
      }
      scf.yield %r : i32
    }
    dataflow.graph.return %start, %s : none, i32
  }
}
