#!/bin/bash
# Whether the benchmarks work: smoke.sh WEFT-COMMAND WORK-FOLDER. Every group runs with --quick; its table and its CSV must
# have rows that parse, the picture must be drawn where gnuplot is installed. No speed is judged.
set -euo pipefail
weft=$1
work=$2
rm -rf "$work"
mkdir -p "$work"
cd "$work"

fail() {
  echo "smoke.sh: $*" >&2
  exit 1
}

plot=
if command -v gnuplot > /dev/null; then plot="--plot rows.svg"; fi
# What would steer OpenBLAS must not reach it.
OPENBLAS_CORETYPE=Prescott "$weft" bench all --quick --csv rows.csv $plot > table.txt 2> errors.txt || {
  cat table.txt errors.txt >&2
  fail "weft bench all --quick"
}
! grep -q Prescott table.txt || fail "OPENBLAS_CORETYPE reached OpenBLAS"
[ -z "$plot" ] || grep -q '</svg>' rows.svg || fail "no picture"

for group in matmul allreduce distributed shards step compile spatial scale samples dataflow; do
  if grep -q "^$group: skipped: " table.txt; then continue; fi
  grep -q "^$group: " table.txt || fail "no table of $group"
  grep -q "^$group," rows.csv || fail "no rows of $group"
done
# Fourteen fields a row; least <= median <= greatest, all finite and above 0 but for shares.
awk -F, '
  /^#/ { next }
  $1 == "group" { heads++; next }
  NF != 14 { print "fields: " $0; bad = 1 }
  !($5 + 0 >= 0 && $5 + 0 <= $6 + 0 && $6 + 0 <= $7 + 0) { print "weft: " $0; bad = 1 }
  $8 != "" && !($9 > 0 && $9 + 0 <= $10 + 0 && $10 + 0 <= $11 + 0 && $12 > 0 && $12 + 0 <= $13 + 0 && $13 + 0 <= $14 + 0) { print "peer: " $0; bad = 1 }
  { rows++ }
  END { exit bad || heads != 1 || rows < 10 }' rows.csv || fail "rows.csv does not parse"
grep -q '^figures to reach' table.txt || fail "no table of figures"

status=0
"$weft" bench nonsense > /dev/null 2> refused.txt || status=$?
[ $status = 2 ] && grep -q nonsense refused.txt || fail "an unknown group gave status $status"
status=0
"$weft" bench shards --quick --plot rows.gif > /dev/null 2> refused.txt || status=$?
[ $status = 2 ] && grep -q rows.gif refused.txt || fail "a picture of unknown kind gave status $status"
