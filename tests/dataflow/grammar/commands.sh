#!/bin/bash
# weft sample and weft holds on the command line: tests/dataflow/grammar/commands.sh BUILD-FOLDER WORK-FOLDER
set -euo pipefail
PATH=$(cd "$1" && pwd)/tools:$PATH
here=$(cd "$(dirname "$0")" && pwd)
grammars=$here/../../../data/samples/grammars
rm -rf "$2"
mkdir -p "$2"
cd "$2"

fail() {
  echo "commands.sh: $*" >&2
  exit 1
}
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR

# ends STATUS WORD COMMAND...: the command ends with this status and says the word.
ends() {
  local status=$1 word=$2 got=0
  shift 2
  "$@" > out.txt 2> err.txt || got=$?
  [ $got = "$status" ] || { cat out.txt err.txt >&2; fail "status $got, not $status: $*"; }
  grep -q -F -e "$word" out.txt err.txt || { cat out.txt err.txt >&2; fail "no '$word': $*"; }
}

# One seed gives one program, alone or among others, on standard output or in a file.
weft sample "$grammars/while.pg" --seed 17 > one.mlir
weft sample "$grammars/while.pg" --seed 15 --count 4 -o four.mlir
awk -v RS='// -----\n' 'NR == 3' ORS= four.mlir | cmp - one.mlir
[ "$(grep -c '^// -----$' four.mlir)" = 3 ]
! cmp -s one.mlir <(weft sample "$grammars/while.pg" --seed 18)
weft sample - --seed 17 < "$grammars/while.pg" | cmp - one.mlir

# Knobs.
weft sample "$grammars/while.pg" --set GRAPHS=2 --set LANES=5 --set LIMIT=-3 > pinned.mlir
[ "$(grep -c 'scf.while' pinned.mlir)" = 2 ]
[ "$(grep -c '%out:5 = ' pinned.mlir)" = 2 ]
[ "$(grep -c 'arith.constant -3 : i32' pinned.mlir)" = 2 ]
weft sample "$grammars/nested.pg" --count 300 --coverage > coverage.txt
[ "$(awk '$1 == 0' coverage.txt | wc -l)" = 0 ]
grep -q "nested.pg:.*  start, alternative 1$" coverage.txt
ends 2 "NAME=NUMBER" weft sample "$grammars/while.pg" --set LANES
ends 2 "NAME=NUMBER" weft sample "$grammars/while.pg" --set LANES=two
ends 2 "no variable \`LANE_\`" weft sample "$grammars/while.pg" --set LANE_=1
ends 2 "no rule \`graf\`" weft sample "$grammars/while.pg" --start graf
printf "start: 'x' y;\n" > wrong.pg
ends 1 "wrong.pg:1" weft sample wrong.pg
ends 1 "missing.pg" weft sample missing.pg

# Verdicts.
ends 0 "while_lanes holds" weft holds "$grammars/while.spct" --input "$here/counting.mlir" --output "$here/counting-lowered.mlir"
ends 0 "graph_launch_boundary holds" weft holds "$grammars/graph-launch.spct" --output "$here/launches.mlir"
ends 1 "while_lanes fails" weft holds "$grammars/while.spct" --input "$here/counting.mlir" --output "$here/counting.mlir"
grep -q "every_condition_argument_is_split" err.txt
grep -q "the sides are 2 and 0" err.txt
ends 2 "--output" weft holds "$grammars/while.spct"
ends 2 "speaks of the input" weft holds "$grammars/while.spct" --output "$here/counting-lowered.mlir"
cat > index.spct <<'END'
postcondition index { language v0; constraints {
  assert wrong: output.operations[99999] == output.operations[0];
} }
END
ends 4 "index has no value" weft holds index.spct --output "$here/counting.mlir"
grep -q "index.spct:2" err.txt
ends 4 "more than 10 steps" weft holds "$grammars/while.spct" --input "$here/counting.mlir" --output "$here/counting-lowered.mlir" --steps 10

# Several modules are judged one by one.
{ cat "$here/counting.mlir"; echo "// -----"; cat "$here/counting.mlir"; } > before.mlir
{ cat "$here/counting-lowered.mlir"; echo "// -----"; cat "$here/counting.mlir"; } > after.mlir
ends 1 "while_lanes holds for module 1" weft holds "$grammars/while.spct" --input before.mlir --output after.mlir
grep -q "while_lanes fails for module 2" out.txt
ends 1 "holds 1 modules and" weft holds "$grammars/while.spct" --input "$here/counting.mlir" --output after.mlir
