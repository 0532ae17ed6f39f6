// A function whose memory comes before its values: as a graph it takes values first.
module {
  func.func @mixed(%a: memref<?xi32>, %n: index, %b: memref<?xi32>, %k: i32) -> i32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %v = memref.load %a[%i] : memref<?xi32>
      %w = arith.muli %v, %k : i32
      memref.store %w, %b[%i] : memref<?xi32>
    }
    %r = memref.load %b[%c0] : memref<?xi32>
    return %r : i32
  }
}
