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
data=$here/../../data/samples
cases=$here/../cases/decoder
steps=1
advance=
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
  out/run-local --steps $steps $advance --in part.h5 --out result.h5
  same result.h5 graph.h5
  [ "$chips" != 2 ] || { $launch -n 2 out/run --steps $steps $advance --in part.h5 --out mpi.h5; same mpi.h5 graph.h5; }
}

# evaluated TOLERANCE KEY=VALUE...: part.json with part.h5 interpreted into graph.h5, evaluated as a schedule, compared with numpy.
evaluated() {
  weft eval part.json --graph --steps $steps $advance --in part.h5 --out graph.h5
  weft eval part.json --schedule --steps $steps $advance --in part.h5 --out schedule.h5
  same schedule.h5 graph.h5
  local got=0
  "${PYTHON:-/usr/bin/python3}" "$here/parts_oracle.py" "$part" part.h5 graph.h5 "$@" || got=$?
  [ $got = 0 ] || [ $got = 77 ] || fail "numpy gives other numbers"
}

# sample TOLERANCE FACTS OPTIONS...: `weft new PART OPTIONS`, evaluated and run on 1, 2 and 4 chips.
sample() {
  local tolerance=$1 facts=$2
  shift 2
  weft new "$part" "$@" -o part.json
  weft tensor make --program part.json --seed 7 -o part.h5
  evaluated "$tolerance" $facts steps=$steps
  for chips in 1 2 4; do on $chips; done
  for split in columns batch; do on 4 --split $split; done
}

case $part in
rmsnorm | layernorm | softmax)
  sample 1e-6 "" --rows 33 --cols 300
  sample 1e-6 "" --rows 1 --cols 65
  sample 2e-6 "" --rows 7 --cols 1030
  ;;
gated-mlp)
  sample 1e-6 "" --rows 33 --cols 96 --hidden 200
  weft new gated-mlp --rows 5 --cols 130 --hidden 256 --dtype bf16 -o part.json
  weft tensor make --program part.json --seed 7 -o part.h5
  evaluated 1e-2
  for split in columns column-row rows; do on 4 --split $split; done
  ;;
rope)
  sample 1e-6 heads=6 --rows 37 --cols 240 --heads 6
  sample 1e-6 heads=2 --rows 5 --cols 40 --heads 2 --dtype bf16
  ;;
embedding) # rows of a table, whole and cut into parts of the vocabulary
  sample 0 "" --rows 37 --cols 100 --hidden 150
  for chips in 2 4; do on $chips --shard table=rows@chip; done
  weft new embedding --rows 3 --cols 40 --hidden 9 --dtype bf16 -o part.json
  weft tensor make --program part.json --seed 7 -o part.h5
  evaluated 0
  on 2 --shard table=rows@chip
  ;;
attention)
  sample 1e-5 "heads=6 keys=2" --rows 37 --cols 192 --heads 6 --kv-heads 2
  sample 1e-2 "heads=2 keys=2" --rows 9 --cols 36 --heads 2 --kv-heads 2 --dtype bf16
  ;;
route)
  sample 1e-6 "" --rows 37 --cols 128 --hidden 5
  ;;
conv) # rows before the first step are given, later ones kept
  steps=5
  sample 1e-6 "" --cols 130 --hidden 4
  ;;
flash) # attention block by block: a carry of maximum, sum and result, and a trip, in one section, which is walked in emitted code
  cp "$data/flash-attention.json" part.json
  weft certify part.json > certified.txt
  compiled out part.json
  for seed in 1 2 3 4 5 6 7 8; do
    weft tensor make --program part.json --seed $seed -o part.h5
    weft eval part.json --in part.h5 --out graph.h5
    weft eval part.json --order random --seed $seed --in part.h5 --out schedule.h5
    same schedule.h5 graph.h5
    got=0
    "${PYTHON:-/usr/bin/python3}" "$here/parts_oracle.py" flash part.h5 graph.h5 1e-6 || got=$?
    [ $got = 0 ] || [ $got = 77 ] || fail "numpy gives other numbers"
    out/run-local --in part.h5 --out result.h5
    same result.h5 graph.h5
  done
  ;;
decoder)
  steps=14
  weft new decoder --layers 1 --d-model 72 --heads 6 --kv-heads 3 --head-size 10 --ffn 130 --vocab 61 --context 20 \
    --prompt 5 -o part.json
  weft tensor make --program part.json --seed 7 -o part.h5
  evaluated 1e-5 layers=1 heads=6 keys=3 steps=$steps
  for chips in 1 2 3 4; do on $chips; done
  for split in columns column-row; do on 4 --split $split; done
  on 4 --shard tok_embed=rows@chip --shard lm_head=cols@chip
  steps=9
  weft new decoder --layers 2 --d-model 64 --heads 4 --kv-heads 2 --ffn 96 --vocab 61 --context 40 --prompt 5 \
    --dtype bf16 -o part.json
  weft tensor make --program part.json --seed 7 -o part.h5
  evaluated 3e-2 layers=2 heads=4 keys=2 steps=$steps slack=3e-2
  on 4
  # The position an input, the values read up to it: a trip, over three blocks of 32 and a part of one.
  steps=70
  advance="--advance pos"
  weft new decoder --layers 1 --d-model 40 --heads 2 --kv-heads 1 --ffn 50 --vocab 33 --context 101 --prompt 5 --trip -o part.json
  weft tensor make --program part.json --seed 7 -o part.h5
  evaluated 1e-5 layers=1 heads=2 keys=1 steps=$steps
  for chips in 1 2 4 8; do on $chips; done
  for split in columns column-row; do on 4 --split $split; done
  weft certify part.json > certified.txt
  steps=102
  for run in "weft eval part.json --graph" "weft eval part.json --schedule" out/run-local; do
    got=0
    $run --steps $steps $advance --in part.h5 --out result.h5 2> refused.err || got=$?
    [ $got = 1 ] || fail "status $got, not 1: a position past the context, $run"
    grep -q "pos.* 101[ ,;]" refused.err || { cat refused.err >&2; fail "the refusal names no position: $run"; }
  done
  ;;
tiny-lm) # trained: its text is known
  steps=95
  cp "$data/tiny-lm.h5" part.h5
  weft new decoder -o part.json
  weft eval part.json --graph --steps $steps $advance --in part.h5 --out graph.h5
  weft diff graph.h5 "$cases/tiny-lm-text.h5" --tensors text --max-ulp 0
  got=0
  "${PYTHON:-/usr/bin/python3}" "$here/parts_oracle.py" decoder part.h5 graph.h5 1e-5 layers=2 heads=4 keys=2 steps=$steps || got=$?
  [ $got = 0 ] || [ $got = 77 ] || fail "numpy gives other numbers"
  for chips in 1 2 4; do on $chips; done
  for split in columns column-row; do on 4 --split $split; done
  on 2 --shard tok_embed=rows@chip
  # The same with a trip: the position is an input, and values are read up to it.
  advance="--advance pos"
  weft new decoder --trip -o part.json
  weft eval part.json --graph --steps $steps $advance --in part.h5 --out trip.h5
  weft diff trip.h5 "$cases/tiny-lm-text.h5" --tensors text --max-ulp 0
  weft eval part.json --schedule --steps $steps $advance --in part.h5 --out schedule.h5
  same schedule.h5 trip.h5
  mv trip.h5 graph.h5
  for chips in 1 2 4; do on $chips; done
  ;;
long-rows) # rows and products that sites of little memory do not hold: cut into column blocks and rounds of blocks
  steps=4
  sed -e 's/"mesh-8x8"/"small"/' -e 's/"local_bytes": [0-9]*/"local_bytes": 262144/' \
    "$here/../../data/targets/mesh-8x8.json" > small.json
  weft new decoder --layers 1 --d-model 64 --heads 4 --kv-heads 2 --ffn 96 --vocab 5003 --context 40 --prompt 3 -o part.json
  weft tensor make --program part.json --seed 7 -o part.h5
  weft eval part.json --graph --steps $steps --in part.h5 --out graph.h5
  weft plan part.json --target small.json -o planned.json
  weft certify planned.json > certified.txt
  weft eval planned.json --steps $steps --in part.h5 --out schedule.h5
  same schedule.h5 graph.h5
  for chips in 1 2 4; do on $chips --target small.json; done
  compiled out planned.json # the schedule itself, op by op
  out/run-local --steps $steps --in part.h5 --out result.h5
  same result.h5 graph.h5
  ;;
*) fail "there is no part $part" ;;
esac
echo "parts.sh $part: passed"
