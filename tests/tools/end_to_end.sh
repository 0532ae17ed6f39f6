#!/bin/bash
# The main job through the command line: tests/tools/end_to_end.sh BUILD-FOLDER WORK-FOLDER PART
# Each failure prints the part and the step; `end_to_end.sh BUILD WORK PART` repeats only that part.
set -euo pipefail
build=$(cd "$1" && pwd)
work=$2/$3
part=$3
root=$(cd "$(dirname "$0")/../.." && pwd)
samples=$root/data/samples
PATH=$build/tools:$PATH
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
rm -rf "$work"
mkdir -p "$work"
cd "$work"
launch="mpirun --oversubscribe --bind-to none"
[ "$(id -u)" != 0 ] || launch="$launch --allow-run-as-root"

fail() {
  echo "end_to_end.sh $part: $*" >&2
  exit 1
}
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR

# refused STATUS WORD COMMAND...: the command ends with this status and says the word on standard error, in one message.
refused() {
  local status=$1 word=$2 got=0
  shift 2
  "$@" > refused.out 2> refused.err || got=$?
  [ $got = "$status" ] || { cat refused.out refused.err >&2; fail "status $got, not $status: $*"; }
  grep -q -e "$word" refused.err || { cat refused.err >&2; fail "no word '$word': $*"; }
}

# same A B: the same bits, and, since results carry the same attributes, the same bytes.
same() {
  weft diff "$1" "$2" --max-ulp 0 > diff.txt || { cat diff.txt >&2; fail "$1 differs from $2"; }
  cmp "$1" "$2" || fail "$1 and $2 are not the same bytes"
}

# compiled NAME PROGRAM OPTIONS...: compiles and builds into NAME.
compiled() {
  local name=$1 program=$2
  shift 2
  weft compile "$program" "$@" -o "$name" > compile.txt 2>&1 || { cat compile.txt >&2; fail "compile $name"; }
  ninja -C "$name" --quiet > ninja.txt 2>&1 || { cat ninja.txt >&2; fail "ninja $name"; }
}

# The splits and the chip counts each allows; the mesh of two axes and the pipeline of three stages.
splits() { # PROGRAM INPUT EXPECTED COUNTS RANKS
  local program=$1 input=$2 expected=$3 split n name
  for split in columns rows batch column-row; do
    for n in $4; do
      name=$split-$n
      compiled $name "$program" --chips $n --split $split
      runs $name $n "$input" "$expected" "$5"
    done
  done
  compiled mesh "$program" --mesh x=2,y=2 --split x=batch,y=columns
  runs mesh 4 "$input" "$expected" "$5"
  compiled pipeline "$program" --chips 3 --split pipeline
  runs pipeline 3 "$input" "$expected" "$5"
}

# runs NAME CHIPS INPUT EXPECTED RANKS: threads and, for chip counts in RANKS, MPI give the expected file.
runs() {
  local name=$1 n=$2 input=$3 expected=$4 threads
  for threads in 1 2; do
    OMP_NUM_THREADS=$threads $name/run-local --in "$input" --out out-$name.h5
    same out-$name.h5 "$expected"
    rm -f out-$name.h5
  done
  case " $5 " in *" $n "*)
    $launch -n $n $name/run --in "$input" --out out-$name.h5
    same out-$name.h5 "$expected"
    rm -f out-$name.h5
    ;;
  esac
}

case $part in
fp32)
  weft new mlp --layers 784,256,256,10 --batch 1000 --dtype fp32 --bias --relu --output logits -o digits.json
  weft tensor rename "$samples/mnist-mlp.h5" x_test=x -o digits.h5
  weft eval digits.json --graph --in digits.h5 --out graph.h5
  weft diff graph.h5 "$samples/mnist-mlp.h5" --tensors logits --max-abs 5e-5
  [ "$(weft tensor accuracy --logits graph.h5:logits --labels digits.h5:labels)" = 982/1000 ]
  compiled one digits.json --chips 1
  runs one 1 digits.h5 graph.h5 1
  splits digits.json digits.h5 graph.h5 "2 3 4 8" "2 3 4"
  ;;
schedule) # the evaluator over whole-machine schedules
  weft new mlp --layers 784,256,256,10 --batch 40 --dtype fp32 --bias --relu --output logits -o digits.json
  weft tensor slice "$samples/mnist-mlp.h5" x_test 0:40 --keep -o part.h5
  weft tensor rename part.h5 x_test=x -o digits.h5
  weft eval digits.json --graph --in digits.h5 --out graph.h5
  weft eval digits.json --schedule --in digits.h5 --out schedule.h5
  same schedule.h5 graph.h5
  for split in columns rows batch column-row; do
    weft shard digits.json --chips 3 --split $split -o machine.json
    weft plan machine.json -o planned.json
    weft eval planned.json --in digits.h5 --out machine.h5
    same machine.h5 graph.h5
    weft eval planned.json --order random --seed 7 --in digits.h5 --out machine.h5
    same machine.h5 graph.h5
  done
  # The chips' programs are proved together; one of another split does not fit.
  weft shard digits.json --chips 3 --split columns --per-chip columns -o machine.json
  weft shard digits.json --chips 3 --split rows --per-chip rows -o machine.json
  weft certify columns > certified.txt
  grep -q '3 chips together' certified.txt || fail "no word about the chips together"
  refused 1 'chip 1' weft certify columns/chip_0.json rows/chip_1.json columns/chip_2.json
  refused 1 'machine of 3 chips' weft certify columns/chip_0.json columns/chip_1.json
  refused 1 'two programs of chip 0' weft certify columns/chip_0.json columns/chip_0.json columns/chip_2.json
  ;;
multicast) # a target whose sites share what they read, on every chip: planned, proved, walked, emitted and run
  weft new mlp --layers 784,256,256,10 --batch 200 --dtype fp32 --bias --relu --output logits -o digits.json
  weft tensor slice "$samples/mnist-mlp.h5" x_test 0:200 --keep -o part.h5
  weft tensor rename part.h5 x_test=x -o digits.h5
  weft eval digits.json --graph --in digits.h5 --out graph.h5
  for n in 1 2 3 4; do
    for split in batch columns rows; do
      weft shard digits.json --chips $n --split $split -o machine.json
      weft plan machine.json --target mesh-8x8 --check -o planned.json
      weft show planned.json > show.txt
      grep -q '^multicast: ' show.txt || fail "no groups on $n chips by $split"
      weft certify planned.json > certified.txt
      weft eval planned.json --order random --seed $n --in digits.h5 --out schedule.h5
      same schedule.h5 graph.h5
      compiled $split-$n digits.json --target mesh-8x8 --chips $n --split $split
      runs $split-$n $n digits.h5 graph.h5 "2 4"
    done
  done
  ;;
int8)
  weft tensor rename "$samples/mnist-mlp-int8.h5" x_test=x -o digits.h5
  requant=17878:23,16623:22
  weft new mlp --layers 784,256,256,10 --batch 1000 --dtype int8 --bias --relu --requant $requant --output logits_i32 -o i32.json
  weft new mlp --layers 784,256,256,10 --batch 1000 --dtype int8 --bias --relu --requant $requant,30213:25 --output logits_i8 -o i8.json
  weft new mlp --layers 784,256 --batch 1000 --dtype int8 --bias --relu-last --requant 17878:23 --output h1 -o h1.json
  weft new mlp --layers 784,256,256 --batch 1000 --dtype int8 --bias --relu --relu-last --requant $requant --output h2 -o h2.json
  for name in h1 h2; do
    weft eval $name.json --in digits.h5 --out $name.h5
    weft diff $name.h5 digits.h5 --tensors $name --max-ulp 0
  done
  for name in i32 i8; do
    weft eval $name.json --in digits.h5 --out $name.h5
    weft diff $name.h5 digits.h5 --tensors logits_$name --max-ulp 0
    for n in 1 2 3 4 8; do
      compiled $name-$n $name.json --chips $n
      runs $name-$n $n digits.h5 $name.h5 "1 2 3 4"
    done
  done
  for split in columns rows batch column-row; do
    compiled $split i32.json --chips 3 --split $split
    runs $split 3 digits.h5 i32.h5 3
  done
  ;;
bf16)
  weft new mlp --layers 784,256,256,10 --batch 64 --dtype bf16 --bias --relu -o digits.json
  weft tensor make --program digits.json --seed 3 -o digits.h5
  weft eval digits.json --graph --in digits.h5 --out graph.h5
  weft eval digits.json --schedule --in digits.h5 --out schedule.h5
  same schedule.h5 graph.h5
  splits digits.json digits.h5 graph.h5 "2 4" "2"
  ;;
small) # extents below the chip counts
  for shape in "33,65,7 5" "1,1 1" "5,0,3 2" "7,5,6,3 0"; do
    set -- $shape
    weft new mlp --layers $1 --batch $2 --dtype fp32 --bias --relu -o small.json
    weft tensor make --program small.json --seed 5 -o small.h5
    weft eval small.json --graph --in small.h5 --out graph.h5
    weft eval small.json --schedule --in small.h5 --out schedule.h5
    same schedule.h5 graph.h5
    for n in 1 2 3 4; do
      for split in columns rows batch; do
        compiled small-$n small.json --chips $n --split $split
        runs small-$n $n small.h5 graph.h5 "2 4"
      done
    done
  done
  ;;
segments) # set by hand, so that small K exercises the tree
  for k in 33 48 64 65; do
    for segments in 2 4 8; do
      weft new gemm --m 5 --k $k --n 9 --segments $segments -o gemm.json
      weft tensor make --program gemm.json --seed $k -o gemm.h5
      weft eval gemm.json --graph --in gemm.h5 --out graph.h5
      weft eval gemm.json --schedule --in gemm.h5 --out schedule.h5
      same schedule.h5 graph.h5
      for n in 2 3; do # whole machines by the evaluator, which is quick here
        weft shard gemm.json --chips $n --split rows -o machine.json
        weft eval machine.json --schedule --in gemm.h5 --out machine.h5
        same machine.h5 graph.h5
      done
      case $k-$segments in 33-2 | 64-4 | 65-8)
        compiled gemm gemm.json --chips 2 --split rows
        runs gemm 2 gemm.h5 graph.h5 2
        ;;
      esac
    done
  done
  ;;
many) # 64 chips on a layer 256 wide: one class
  weft new mlp --layers 784,256,256,10 --batch 64 --dtype fp32 --bias --relu -o digits.json
  weft tensor make --program digits.json --seed 9 -o digits.h5
  weft eval digits.json --graph --in digits.h5 --out graph.h5
  compiled many digits.json --chips 64 --split columns
  runs many 64 digits.h5 graph.h5 ""
  weft new mlp --layers 256,256,256 --batch 64 --dtype fp32 --bias --relu -o equal.json
  compiled equal equal.json --chips 64 --split columns
  [ "$(ls equal/class_*.c | wc -l)" = 1 ] || fail "64 identical chips gave $(ls equal/class_*.c | wc -l) classes"
  weft tensor make --program equal.json --seed 9 -o equal.h5
  weft eval equal.json --graph --in equal.h5 --out equal-graph.h5
  runs equal 64 equal.h5 equal-graph.h5 ""
  ;;
incremental)
  weft new mlp --layers 784,256,256,10 --batch 32 --dtype fp32 --bias --relu -o digits.json
  compiled out digits.json --chips 3 --split pipeline
  [ "$(cat out/*.c | wc -l)" -lt 300 ] || fail "the C of the digits network has $(cat out/*.c | wc -l) lines"
  ninja -C out | grep -q 'no work to do'
  weft compile digits.json --chips 3 --split pipeline -o out > compile.txt
  ninja -C out | grep -q 'no work to do'
  weft new mlp --layers 784,256,256,12 --batch 32 --dtype fp32 --bias --relu -o wider.json
  weft compile wider.json --chips 3 --split pipeline -o out > compile.txt
  ninja -C out -v > ninja.txt
  [ "$(grep -c -e '-c [a-z_0-9]*\.c ' ninja.txt)" = 1 ] || { cat ninja.txt; fail "more than one class was recompiled"; }
  grep -q -e '-c class_2.c' ninja.txt
  ninja -C out | grep -q 'no work to do'
  ;;
foreign)
  cases=$root/tests/cases/spatial/valid
  weft compile $cases/template-gemm.json --chips 1 -o one > compile.txt
  ninja -C one --quiet
  weft tensor make --program $cases/template-gemm.json --seed 1 -o gemm.h5
  weft eval $cases/template-gemm.json --in gemm.h5 --out graph.h5
  one/run-local --in gemm.h5 --out one.h5
  same one.h5 graph.h5
  for split in columns batch; do
    compiled two $cases/template-gemm.json --chips 2 --split $split
    runs two 2 gemm.h5 graph.h5 2
  done
  # One that cannot be lifted runs on one chip and is refused sharding by name.
  weft tensor make --program $cases/template-softmax.json --seed 1 -o softmax.h5
  weft eval $cases/template-softmax.json --in softmax.h5 --out expected.h5
  compiled softmax $cases/template-softmax.json --chips 1
  softmax/run-local --in softmax.h5 --out softmax-out.h5
  same softmax-out.h5 expected.h5
  $launch -n 1 softmax/run --in softmax.h5 --out softmax-out.h5
  same softmax-out.h5 expected.h5
  refused 1 'cannot be sharded' weft compile $cases/template-softmax.json --chips 2 -o nothing
  # Parameters with a declared fill, in sections that are walked: evaluator and emitted C fill alike.
  weft tensor make --program $cases/scheduled-sections-multicast.json --seed 1 -o fill.h5
  weft tensor rename fill.h5 x=x --only -o fill-x.h5
  weft eval $cases/scheduled-sections-multicast.json --in fill.h5 --out expected.h5
  compiled filled $cases/scheduled-sections-multicast.json --chips 1
  for input in fill.h5 fill-x.h5; do
    weft eval $cases/scheduled-sections-multicast.json --in $input --out again.h5
    same again.h5 expected.h5
    filled/run-local --in $input --out filled.h5
    same filled.h5 expected.h5
  done
  ;;
faults)
  weft new mlp --layers 64,32,10 --batch 8 --dtype fp32 --bias --relu -o digits.json
  weft tensor make --program digits.json --seed 1 -o digits.h5
  compiled out digits.json --chips 2 --split columns
  out/run-local --in digits.h5 --out result.h5
  cp result.h5 old.h5
  refused 2 'chip=0' weft compile digits.json --chips 0 -o none
  refused 2 'chip=0' weft shard digits.json --chips 0 -o none.json
  [ ! -e none ] && [ ! -e none.json ] || fail "no chips are made something of"
  refused 1 'digits.json: .*no-such' weft compile digits.json --chips 2 --shard no-such=rows@chip -o none
  head -c 3000 digits.h5 > truncated.h5
  weft tensor rename digits.h5 w2=other -o missing.h5
  weft new mlp --layers 64,33,10 --batch 8 --dtype fp32 --bias --relu -o other.json
  weft tensor make --program other.json --seed 1 -o shape.h5
  refused 1 "missing.h5: .*w2" weft eval digits.json --in missing.h5 --out result.h5
  refused 1 "shape.h5: .*w1" weft eval digits.json --in shape.h5 --out result.h5
  refused 1 "missing.h5: .*w2" weft eval digits.json --schedule --in missing.h5 --out result.h5
  refused 1 "shape.h5: .*w1" weft eval digits.json --schedule --in shape.h5 --out result.h5
  # Remedies: each message says what to change, and it is what can be changed.
  mkdir folder
  echo '{}' > empty.json
  for how in --graph --schedule; do
    refused 1 '^hint: give the file the program was made for' weft eval digits.json $how --in shape.h5 --out result.h5
    refused 1 '^hint: .*name a file in it' weft eval digits.json $how --in digits.h5 --out folder
  done
  refused 1 '^hint: .*a folder: name a file$' weft eval digits.json --in folder --out result.h5
  refused 1 '^hint: .*a folder: name a file$' weft compile . -o none
  refused 1 '^hint: .*weft new' weft compile /dev/null -o none
  refused 1 '^hint: .*weft new' weft show empty.json
  refused 1 '^hint: .*name a file in it' weft fmt digits.json -o folder
  refused 1 '^hint: .*name a file in it' weft tensor make --program digits.json --seed 1 -o folder
  refused 1 '^hint: .*name a file in it' weft tensor rename digits.h5 x=y -o folder
  refused 1 '^hint: .*a file stands' weft shard digits.json --chips 2 --per-chip digits.json
  refused 2 'not an empty word' weft compile digits.json -o ""
  refused 2 '^hint: weft tensor make --help' weft tensor make --program digits.json --seed abc -o x.h5
  eval "$(sed -n 's/^hint: \(weft .* --help\).*/\1/p' refused.err)" > help.txt || fail "the help that a hint names"
  for words in --help --version 'new --help' 'new mlp --help' 'tensor --help' 'show digits.json' 'tensor show digits.h5'; do
    got=0
    weft $words > /dev/full 2> refused.err || got=$?
    [ $got = 3 ] && grep -q 'standard output' refused.err || fail "status $got where nothing can be written: weft $words"
  done
  # Names are no commands to the terminal.
  sed 's/"logits"/"lo\\u001bgits"/g' digits.json > escape.json
  weft tensor make --program escape.json --seed 1 -o escape.h5
  compiled escape escape.json --chips 2
  escape/run-local --in escape.h5 --out escape-out.h5
  { weft show escape.json; weft tensor show escape-out.h5; weft diff escape-out.h5 result.h5
    weft shard escape.json --chips 2 --explain -o sharded.json; escape/run-local --in escape.h5 --stats; } > escape.txt 2>&1 || true
  grep -q 'lo.x1bgits' escape.txt || { cat -v escape.txt; fail "no escaped name"; }
  ! grep -q $'\x1b' escape.txt || { cat -v escape.txt; fail "a control character was printed"; }
  for how in local mpi; do
    program=out/run-local
    [ $how = local ] || program="$launch -n 2 out/run"
    refused 1 truncated.h5 $program --in truncated.h5 --out result.h5
    refused 1 "missing.h5.*w2\|w2.*missing.h5" $program --in missing.h5 --out result.h5
    refused 1 "w1" $program --in shape.h5 --out result.h5
    [ "$(grep '^weft: ' refused.err | grep -vc 'warning:')" = 1 ] || { cat refused.err; fail "more than one message"; }
    refused 1 nowhere.h5 $program --in nowhere.h5 --out result.h5
    # What would only fail at the end is refused at the beginning.
    refused 1 'nowhere/result.h5' timeout 60 $program --in digits.h5 --out nowhere/result.h5 --steps 1000000000
    refused 1 '/dev/null' timeout 60 $program --in digits.h5 --out /dev/null --steps 1000000000
    cp digits.h5 both.h5
    ln -sf both.h5 link.h5
    for output in both.h5 ./both.h5 link.h5; do
      refused 2 'replace the input' $program --in both.h5 --out $output
      refused 2 'replace the input' weft eval digits.json --in both.h5 --out $output
      cmp both.h5 digits.h5 || fail "the input was touched"
    done
    cmp result.h5 old.h5 || fail "the old result was touched"
  done
  # A dataset outside its declared range is refused by all: what is proved rests on it.
  weft new gemm --m 4 --k 64 --n 8 --dtype int8 --range A=-3:3 -o ranged.json
  weft new gemm --m 4 --k 64 --n 8 --dtype int8 -o any.json
  weft tensor make --program any.json --seed 3 -o any.h5
  refused 1 "'A' holds .* outside its range -3..3" weft eval ranged.json --graph --in any.h5 --out result.h5
  refused 1 "'A' holds .* outside its range -3..3" weft eval ranged.json --schedule --in any.h5 --out result.h5
  for chips in 1 2; do
    compiled ranged ranged.json --chips $chips --split columns
    refused 1 "'A' holds .* outside its range -3..3" ranged/run-local --in any.h5 --out result.h5
  done
  # A sum that leaves 32 bits is a fault for all, though what is stored in the end would fit.
  weft new gemm --m 4 --k 256 --n 8 --dtype int8 --bias --requant 1:40 --range bias=2147483000:2147483647 --range A=1:127 \
    --range B=1:127 -o wide.json
  weft tensor make --program wide.json --seed 3 -o wide.h5
  refused 1 'does not fit Int32' weft eval wide.json --graph --in wide.h5 --out result.h5
  refused 1 'does not fit Int32' weft eval wide.json --schedule --in wide.h5 --out result.h5
  for chips in 1 2; do
    compiled wide wide.json --chips $chips --split rows
    refused 1 'does not fit Int32' wide/run-local --in wide.h5 --out result.h5
  done
  got=0
  $launch -n 3 out/run --in digits.h5 --out result.h5 > rank.txt 2>&1 || got=$?
  [ $got != 0 ] && grep -q '2' rank.txt && [ "$(grep '^weft: ' rank.txt | grep -vc 'warning:')" = 1 ] || { cat rank.txt; fail "wrong rank count"; }
  got=0
  out/run --in digits.h5 --out result.h5 > rank.txt 2>&1 || got=$?
  [ $got != 0 ] && grep -q 'mpirun -n 2' rank.txt || { cat rank.txt; fail "started without mpirun"; }
  cmp result.h5 old.h5
  ;;
together) # several compiles into one directory: one whole set of files, whichever
  weft new mlp --layers 784,256,256,10 --batch 8 --bias --relu -o digits.json
  compile() { weft compile digits.json --chips $1 --split $2 -o "$3" > /dev/null; }
  compile 8 columns a
  compile 3 rows b
  [ "$(ls a/class_*.c | wc -l)" -gt 1 ]
  for ((i = 0; i < 15; i++)); do
    compile 8 columns "o ut" & compile 3 rows "o ut" & compile 8 columns "o ut" &
    wait
    diff -r a "o ut" > /dev/null || diff -r b "o ut" > /dev/null || { diff -rq a "o ut"; diff -rq b "o ut"; fail "a mixed set"; }
  done
  weft compile digits.json --chips 2 -o "it's \$here" > next.txt
  eval "$(sed -n 's/^next: //p' next.txt) --quiet" || fail "the next command is not quoted"
  touch file
  refused 1 'Not a directory' weft compile digits.json --chips 2 -o file
  refused 1 'cannot hold its range' weft new mlp --layers 4,4 --batch 2 --dtype int8 --range x=-1000:1000 -o r.json
  refused 1 'cannot hold its range' weft new gemm --m 2 --k 2 --n 2 --dtype int8 --range A=-129:0 -o r.json
  weft shard digits.json --chips 4 --split rows --explain -o /dev/null > explain.txt
  ! grep -q 'runner-up.* -[0-9]' explain.txt || fail "a runner-up that is quicker"
  grep -q 'asked by --split rows; quicker would be N@chip, by [0-9.e+]* us' explain.txt || { cat explain.txt; fail "what would be quicker"; }
  ;;
kill)
  weft new mlp --layers 64,32,10 --batch 8 --dtype fp32 --bias --relu -o digits.json
  weft tensor make --program digits.json --seed 1 -o digits.h5
  compiled out digits.json --chips 3 --split columns
  $launch -n 3 $PWD/out/run --in digits.h5 --out result.h5 --steps 1000000000 --map > kill.txt 2>&1 &
  launcher=$!
  trap 'kill -9 $launcher 2> /dev/null || true; pkill -9 -f "$PWD/out/run" || true' EXIT
  # The map is printed when the ranks are about to run.
  for ((i = 0; i < 600; i++)); do grep -q '^rank 2' kill.txt && break || sleep 0.1; done
  sleep 2
  victim=
  for p in $(pgrep -x run); do
    if [ "$(readlink /proc/$p/exe)" = "$PWD/out/run" ]; then victim=$p; fi
  done
  [ -n "$victim" ] || { cat kill.txt; fail "no rank is running"; }
  began=$SECONDS
  kill -9 "$victim"
  got=0
  wait $launcher || got=$?
  [ $got != 0 ] || fail "the launcher ended with 0"
  [ $((SECONDS - began)) -le 10 ] || fail "it took $((SECONDS - began)) s"
  [ "$(grep -c 'rank [0-9]*, chip .* waiting for' kill.txt)" = 2 ] || { cat kill.txt; fail "not every survivor said what it waited for"; }
  [ ! -e result.h5 ] || fail "a result was left"
  ;;
progress)
  # On a terminal, and only there, long work says what it is at, and wipes the line.
  weft new mlp --layers 300,300,10 --batch 300 --dtype fp32 -o model.json
  weft tensor make --program model.json --seed 1 -o in.h5
  evaluate="weft eval model.json --in in.h5 --out out.h5 --schedule --steps"
  script -qec "timeout 3 $evaluate 1000000" /dev/null > terminal.txt || true
  grep -q 'evaluating, 2 s' terminal.txt || { cat -v terminal.txt; fail "nothing was told"; }
  timeout -s INT 3 $evaluate 1000000 > log.txt 2>&1 || true
  [ ! -s log.txt ] || { cat log.txt; fail "a log was written to"; }
  ;;
*) fail "there is no part $part" ;;
esac
echo "end_to_end.sh $part: passed"
