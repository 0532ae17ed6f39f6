#!/bin/bash
# Parts of transformers through the command line: tests/tools/parts.sh BUILD-FOLDER WORK-FOLDER PART
# Interpreter, evaluator and emitted C on 1, 2 and 4 chips (threads, and MPI on 2) give the same bits, and numpy in
# float64 nearly the same numbers. `parts.sh BUILD WORK PART` repeats only that part.
set -euo pipefail
build=$(cd "$1" && pwd)
mkdir -p "$2"
work=$(cd "$2" && pwd)/$3
part=$3
here=$(cd "$(dirname "$0")" && pwd)
PATH=$build/tools:$PATH
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
rm -rf "$work"
mkdir -p "$work"
cd "$work"
launch="mpirun --oversubscribe --bind-to none"
[ "$(id -u)" != 0 ] || launch="$launch --allow-run-as-root"

fail() {
  echo "parts.sh $part: $*" >&2
  exit 1
}
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR

same() { # A B
  weft diff "$1" "$2" --max-ulp 0 > diff.txt || { cat diff.txt >&2; fail "$1 differs from $2"; }
}

compiled() { # NAME PROGRAM OPTIONS...
  local name=$1 program=$2
  shift 2
  rm -rf "$name"
  weft compile "$program" "$@" -o "$name" > compile.txt 2>&1 || { cat compile.txt >&2; fail "compile $name: $*"; }
  ninja -C "$name" --quiet > ninja.txt 2>&1 || { cat ninja.txt >&2; fail "ninja $name"; }
}

# on CHIPS OPTIONS...: part.json compiled and run, by threads and on 2 chips by MPI, equals graph.h5.
on() {
  local chips=$1
  shift
  compiled out part.json --chips "$chips" "$@"
  out/run-local --in part.h5 --out result.h5
  same result.h5 graph.h5
  [ "$chips" != 2 ] || { $launch -n 2 out/run --in part.h5 --out mpi.h5; same mpi.h5 graph.h5; }
}

# evaluated TOLERANCE KEY=VALUE...: part.json with part.h5 interpreted into graph.h5, evaluated as a schedule, compared with numpy.
evaluated() {
  weft eval part.json --graph --in part.h5 --out graph.h5
  weft eval part.json --schedule --in part.h5 --out schedule.h5
  same schedule.h5 graph.h5
  local got=0
  "${PYTHON:-/usr/bin/python3}" "$here/parts_oracle.py" "$part" part.h5 graph.h5 "$@" || got=$?
  [ $got = 0 ] || [ $got = 77 ] || fail "numpy gives other numbers"
}

# sample TOLERANCE OPTIONS...: `weft new PART OPTIONS`, evaluated and run on 1, 2 and 4 chips.
sample() {
  local tolerance=$1
  shift
  weft new "$part" "$@" -o part.json
  weft tensor make --program part.json --seed 7 -o part.h5
  evaluated "$tolerance"
  for chips in 1 2 4; do on $chips; done
  for split in columns batch; do on 4 --split $split; done
}

case $part in
rmsnorm | layernorm | softmax)
  sample 1e-6 --rows 33 --cols 300
  sample 1e-6 --rows 1 --cols 65
  sample 2e-6 --rows 7 --cols 1030
  ;;
gated-mlp)
  sample 1e-6 --rows 33 --cols 96 --hidden 200
  weft new gated-mlp --rows 5 --cols 130 --hidden 256 --dtype bf16 -o part.json
  weft tensor make --program part.json --seed 7 -o part.h5
  evaluated 1e-2
  for split in columns column-row rows; do on 4 --split $split; done
  ;;
*) fail "there is no part $part" ;;
esac
echo "parts.sh $part: passed"
