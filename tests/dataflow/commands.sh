#!/bin/bash
# The commands over MLIR text, end to end: tests/dataflow/commands.sh BUILD-FOLDER WORK-FOLDER PART
# Parts: commands, chips.
set -eEuo pipefail
build=$(cd "$1" && pwd)
work=$2/$3
part=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
cases=$root/tests/cases/dataflow
PATH=$build/tools:$PATH
rm -rf "$work"
mkdir -p "$work"
cd "$work"

fail() {
  echo "commands.sh $part: $*" >&2
  exit 1
}
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR

# refused WORDS COMMAND...: exit status 1, and the words on standard error.
refused() {
  local words=$1 got=0
  shift
  "$@" > refused.out 2> refused.err || got=$?
  [ $got = 1 ] || { cat refused.out refused.err >&2; fail "status $got: $*"; }
  grep -qF -e "$words" refused.err || { cat refused.err >&2; fail "no words '$words': $*"; }
}

# failed COMMAND...: exit status 1; what it said is in said.txt.
failed() {
  local got=0
  "$@" > said.txt 2>&1 || got=$?
  [ $got = 1 ] || { cat said.txt >&2; fail "status $got: $*"; }
}

# says WORDS COMMAND...: it ends well and prints a line of exactly these words.
says() {
  local words=$1
  shift
  "$@" > said.txt 2> said.err || { cat said.err >&2; fail "it failed: $*"; }
  grep -qxF -e "$words" said.txt || { cat said.txt >&2; fail "no line '$words': $*"; }
}

cat > dot.mlir << 'END'
func.func @dot(%n: index, %a: memref<?xi32>, %b: memref<?xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0 : i32
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %z) -> (i32) {
    %x = memref.load %a[%i] : memref<?xi32>
    %y = memref.load %b[%i] : memref<?xi32>
    %p = arith.muli %x, %y : i32
    %t = arith.addi %sum, %p : i32
    scf.yield %t : i32
  }
  return %s : i32
}
END
arguments=(--arg 0=4 --mem '1=[1, 2, 3, 4]' --mem '2=[5, 6, 7, 8]')

# The same line, or the same refusal, from each way of running a program.
every_way() { # says|refused WORDS FILE OPTIONS...
  local check=$1 words=$2 program=$3
  shift 3
  weft lower "$program" -o every.mlir
  $check "$words" weft interp "$program" "$@"
  $check "$words" weft sim every.mlir "$@"
  $check "$words" weft run "$program" "$@"
  $check "$words" weft run every.mlir "$@"
  $check "$words" weft run every.mlir --machines "$@"
}

# Names that C and pictures must quote, inputs in another order, sizes known when it runs, addresses that would wrap.
part_odd_programs() {
  cat > names.mlir << 'END'
func.func @"a\22b\0A%s \5C*/ ??/ é"(%m: memref<?xi32>, %n: index) -> i32 {
  %v = memref.load %m[%n] : memref<?xi32>
  return %v : i32
}
END
  every_way says 'result 0: 2' names.mlir --mem '0=[1, 2]' --arg 1=1
  weft show every.mlir --dot > names.dot
  ! command -v dot > /dev/null || dot -Tsvg names.dot > names.svg
  cat > sizes.mlir << 'END'
func.func @sizes(%n: index, %m: memref<?x65536xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %x = arith.constant 7 : i32
  %a = memref.alloc(%n) : memref<?xi32>
  %b = memref.alloc(%c3) : memref<?x2xi32>
  memref.store %x, %a[%c0] : memref<?xi32>
  memref.store %x, %b[%c0, %c0] : memref<?x2xi32>
  %y = memref.load %a[%c0] : memref<?xi32>
  return %y : i32
}
func.func @wraps(%n: index, %m: memref<?x65536xi32>) -> i32 {
  %c0 = arith.constant 0 : index
  %x = memref.load %m[%n, %c0] : memref<?x65536xi32>
  return %x : i32
}
END
  every_way says 'result 0: 7' sizes.mlir --graph sizes --arg 0=3 --mem '1=[5]'
  every_way refused 'the buffer is too large' sizes.mlir --graph sizes --arg 0=-3 --mem '1=[5]'
  every_way refused 'the buffer is too large' sizes.mlir --graph sizes --arg 0=4611686018427387904 --mem '1=[5]'
  every_way says 'result 0: 5' sizes.mlir --graph wraps --arg 0=0 --mem '1=[5]'
  every_way refused 'index out of bounds' sizes.mlir --graph wraps --arg 0=281474976710656 --mem '1=[5]'
}

# A loop-free graph becomes the body of a Scalar stage of a spatial program.
part_cells() {
  local program=$root/tests/cases/spatial/valid/template-scalar.json
  cat > cells.mlir << 'END'
dataflow.graph private @clip(%start: none, %a: i32, %b: i32) -> (i32) attributes {input_segments = array<i32: 2, 0, 0>, result_segments = array<i32: 1, 0, 0>} {
  %p = arith.cmpi slt, %a, %b : i32
  %r = scf.if %p -> (i32) {
    %s = arith.addi %a, %b : i32
    scf.yield %s : i32
  } else {
    scf.yield %b : i32
  }
  dataflow.graph.return %start, %r : none, i32
}
END
  refused 'it is structured control' weft show cells.mlir --cells
  weft lower cells.mlir -o cells.df.mlir
  weft show cells.df.mlir --cells > cells.json
  refused 'no cell for' weft show dot.df.mlir --cells
  awk '
    held && /^        "Scalar": \{/ { printf "      \"kind\": "; while ((getline line < "cells.json") > 0) print line; skip = 1; held = 0; next }
    held { print "      \"kind\": {"; held = 0 }
    skip && /^      },/ { print ","; skip = 0; next }
    skip { next }
    /^      "kind": \{/ { held = 1; next }
    { print }' "$program" > spliced.json
  grep -q '"Lt"' spliced.json
  weft check spliced.json > said.txt
  weft check "$program" > said.txt
}

# A token with many uses, in a machine of several functions: the sum of 1 to 150, twice, times the number of rounds.
part_wide_program() {
  awk 'BEGIN {
    print "func.func @wide(%n: index, %m: memref<1xi32>) -> i32 {\n  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index"
    print "  %z = arith.constant 0 : i32\n  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %z) -> (i32) {\n    %a0 = memref.load %m[%c0] : memref<1xi32>"
    print "    %x0 = arith.subi %s, %s : i32"
    for (i = 1; i <= 150; i++) printf "    %%k%d = arith.constant %d : i32\n    %%b%d = arith.addi %%a%d, %%k%d : i32\n    %%a%d = arith.addi %%b%d, %%x0 : i32\n", i, i, i, i - 1, i, i, i
    print "    %t = arith.addi %a150, %s : i32\n    scf.yield %t : i32\n  }\n  return %r : i32\n}"
  }' > wide.mlir
  weft lower wide.mlir -o wide.df.mlir
  weft codegen wide.df.mlir --machines -o wide
  [ "$(grep -c 'static int machine_0_part_' wide/program.c)" -ge 3 ] || fail "one function"
  says 'result 0: 34035' weft run wide.df.mlir --machines --arg 0=3 --mem '1=[20]'
  says 'result 0: 34035' weft sim wide.df.mlir --arg 0=3 --mem '1=[20]'
}

part_commands() {
  says 'result 0: 70' weft interp dot.mlir "${arguments[@]}"
  says 'result 0: 70' weft run dot.mlir "${arguments[@]}"
  weft lower dot.mlir --check -o dot.df.mlir 2> check.txt
  grep -q 'outside the domain' check.txt
  says 'result 0: 70' weft sim dot.df.mlir "${arguments[@]}"
  says 'result 0: 70' weft sim dot.df.mlir "${arguments[@]}" --order random --seed 7 --capacity unbounded
  says 'result 0: 70' weft run dot.df.mlir "${arguments[@]}"
  says 'as loops' weft run dot.df.mlir "${arguments[@]}"
  says 'as machine' weft run dot.df.mlir --machines "${arguments[@]}"
  says 'result 0: 70' weft run dot.df.mlir --machines "${arguments[@]}"
  # Generic and custom form are the same module.
  weft lower dot.mlir --generic -o dot.generic.mlir
  weft lower dot.generic.mlir -o dot.again.mlir
  cmp dot.df.mlir dot.again.mlir
  weft fmt dot.generic.mlir -o dot.again.mlir
  cmp dot.df.mlir dot.again.mlir
  weft fmt dot.df.mlir --generic -o dot.again.mlir
  cmp dot.generic.mlir dot.again.mlir
  weft show dot.df.mlir --dot > dot.dot
  grep -q 'label="for, line' dot.dot
  # Memories through HDF5.
  weft run dot.mlir --arg 0=2 --mem '1=[1, 2]' --mem '2=[3, 4]' -o memories.h5 > said.txt
  says 'result 0: 11' weft interp dot.mlir --arg 0=2 --mem 1=memories.h5:/mem1 --mem 2=memories.h5:/mem2
  for words in --mem=1=[1,\ 2 --mem=1=[x] --mem=9=[1] --mem=0=[1] --arg=0=x --arg=0 --stream=1; do
    status=0
    weft sim dot.df.mlir "$words" > said.txt 2>&1 || status=$?
    [ $status = 2 ] || { cat said.txt >&2; fail "status $status: $words"; }
    grep -q '^weft: ' said.txt
  done
  refused 'index out of bounds' weft sim dot.df.mlir --arg 0=5 --mem '1=[1, 2, 3, 4]' --mem '2=[5, 6, 7, 8]'
  refused 'index out of bounds' weft interp dot.mlir --arg 0=5 --mem '1=[1, 2, 3, 4]' --mem '2=[5, 6, 7, 8]'
  refused 'dot.mlir:6: @dot: memref.load: index out of bounds' weft run dot.mlir --arg 0=5 --mem '1=[1, 2, 3, 4]' --mem '2=[5, 6, 7, 8]'
  refused 'dot.df.mlir:' weft run dot.df.mlir --arg 0=5 --mem '1=[1, 2, 3, 4]' --mem '2=[5, 6, 7, 8]'
  grep -q ': @dot: dataflow.load: index out of bounds' refused.err
  part_odd_programs
  part_wide_program
  part_cells
  # What is refused writes nothing, also where the result would replace what was read.
  sed 's/scf.for %i = %c0 to %n step %c1 iter_args(%sum = %z) -> (i32)/scf.parallel (%i) = (%c0) to (%n) step (%c1) init (%z) -> i32/; s/%t = arith.addi.*//; s/scf.yield %t : i32/scf.reduce(%p : i32) { ^bb0(%l: i32, %r: i32): %q = arith.addi %l, %r : i32 scf.reduce.return %q : i32 }/' dot.mlir > parallel.mlir
  refused 'parallel.mlir:5:' weft lower parallel.mlir -o parallel.df.mlir
  [ ! -e parallel.df.mlir ]
  cp parallel.mlir kept.mlir
  refused 'parallel.mlir:5:' weft lower parallel.mlir -o parallel.mlir
  cmp parallel.mlir kept.mlir
  sed 's/scf.for %i/scf.parallel (%i)/' "$cases/103-threads.mlir" > parallel.mlir
  cp parallel.mlir kept.mlir
  refused 'parallel.mlir:' weft publish parallel.mlir -o parallel.mlir
  cmp parallel.mlir kept.mlir
  echo 'func.func @x( {' > broken.mlir
  refused 'broken.mlir:1:' weft lower broken.mlir
  # Files of several modules.
  { cat dot.mlir; echo '// -----'; sed 's/@dot/@tod/' dot.mlir; } > two.mlir
  weft lower two.mlir -o two.df.mlir
  [ "$(grep -c '^// -----' two.df.mlir)" = 1 ]
  says 'result 0: 70' weft sim two.df.mlir --graph tod "${arguments[@]}"
  for case in "$cases"/0[0-3]*.json; do
    weft interp "${case%.json}.mlir" --case "$case" > said.txt
    weft sim "${case%.json}.mlir" --case "$case" > said.txt
  done
  for case in "$cases"/04*.json; do weft sim "${case%.json}.mlir" --case "$case" > said.txt; done
}

# A producer, a filter and a consumer on as many processes, with many tokens.
many_tokens() {
  awk 'BEGIN {
    n = 20000; seed = 1
    printf "{\"runs\": [{\"buffers\": {\"A\": {\"type\": \"i32\", \"init\": ["
    for (i = 0; i < n; i++) { seed = (seed * 1103515245 + 12345) % 2147483648; a[i] = i ? seed % 2001 - 1000 : 3; printf "%s%d", i ? ", " : "", a[i] }
    m = 0
    for (i = 1; i < n; i++) if (a[i] > 0) b[m++] = a[i] + a[0]
    b[m++] = 0
    printf "]}, \"B\": {\"type\": \"i32\", \"init\": ["
    for (i = 0; i < m; i++) printf "%s-1", i ? ", " : ""
    printf "]}}, \"streams\": {\"p\": {\"type\": \"i32\"}, \"q\": {\"type\": \"i32\"}}, \"launches\": [{\"threads\": ["
    printf "{\"entry\": \"consumer\", \"args\": [\"@B\", \"~q\"]}, {\"entry\": \"filter\", \"args\": [%d, \"~p\", \"~q\"]}, ", n
    printf "{\"entry\": \"producer\", \"args\": [%d, \"@A\", \"~p\"]}], \"expect\": {\"B\": [", n
    for (i = 0; i < m; i++) printf "%s%d", i ? ", " : "", b[i]
    print "]}, \"waiting\": {\"p\": [], \"q\": []}}]}]}"
  }' > many.json
}

part_chips() {
  launch="mpirun --oversubscribe --bind-to none"
  [ "$(id -u)" != 0 ] || launch="$launch --allow-run-as-root"
  many_tokens
  weft publish "$cases/103-threads.mlir" -o published.mlir
  sed 's/consumer", "args"/consumer", "chip": 1, "args"/g' "$cases/103-threads.json" > placed.json
  sed 's/\[6, "~p"/[7, "~p"/' "$cases/103-threads.json" > waits.json
  sed 's/\[6, "@A"/[8, "@A"/' "$cases/103-threads.json" > faults.json
  good=("$cases/103-threads.json" placed.json many.json)
  for program in "$cases/103-threads.mlir" published.mlir; do
    weft codegen "$program" -o threads
    ninja -C threads > ninja.txt 2>&1 || { cat ninja.txt >&2; fail ninja; }
    [ "$(grep -c warning ninja.txt)" = 0 ] || { cat ninja.txt >&2; fail "emitted C has warnings"; }
    threads/run-local --version | grep -q '^weft [0-9]'
    threads/run-local --help | grep -q producer
    for option in --help --version; do
      status=0
      threads/run-local $option > /dev/full 2> said.txt || status=$?
      [ $status = 3 ] && grep -q 'standard output' said.txt || fail "status $status: $option where nothing can be written"
    done
    status=0
    threads/run-local --nothing 2> said.txt || status=$?
    [ $status = 2 ] && grep -q 'no option' said.txt || fail "status $status: an unknown option"
    threads/run-local "${good[@]}" > said.txt 2>&1 || { cat said.txt >&2; fail "run-local"; }
    [ "$(grep -c 'as expected' said.txt)" = 3 ]
    for n in 1 2 3 4; do
      timeout 60 $launch -n $n threads/run "${good[@]}" > said.txt 2>&1 || { cat said.txt >&2; fail "$n processes"; }
      [ "$(grep -c 'as expected' said.txt)" = 3 ]
    done
    # All at once: mpirun takes seconds to end after a failure.
    for n in 1 2 3; do
      for case in waits faults; do
        { timeout 60 $launch -n $n threads/run $case.json > said.$case.$n 2>&1 && echo 0 || echo $?; } > status.$case.$n &
      done
    done
    wait
    for n in 1 2 3; do
      for case in waits faults; do
        [ "$(cat status.$case.$n)" = 1 ] || { cat said.$case.$n >&2; fail "status $(cat status.$case.$n): $case, $n processes"; }
      done
      grep -q '@consumer.*no token comes any more; it waits for the channel q' said.waits.$n
      grep -q '@producer.*index out of bounds' said.faults.$n
    done
  done
  [ "$(ninja -C threads | tail -1)" = 'ninja: no work to do.' ]
}

case $part in
commands) part_commands ;;
chips) part_chips ;;
*) fail "no such part" ;;
esac
