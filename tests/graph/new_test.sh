#!/bin/bash
# The command `weft new`: tests/graph/new_test.sh WEFT WORK-FOLDER
set -euo pipefail
weft=$1
mkdir -p "$2"
cd "$2"

fail() {
  echo "new_test.sh: $*" >&2
  exit 1
}

# refused STATUS WORDS ARGUMENTS...: weft new ends with the status and says the words on standard error.
refused() {
  local status=$1 words=$2 got=0
  shift 2
  "$weft" new "$@" > out.txt 2> err.txt || got=$?
  [ $got = "$status" ] || fail "status $got, not $status: weft new $*"
  grep -qF -e "$words" err.txt || { cat err.txt >&2; fail "no words '$words': weft new $*"; }
  [ ! -s out.txt ] || fail "a program in spite of an error: weft new $*"
}

# made ARGUMENTS...: a program that validates and is written in canonical form.
made() {
  "$weft" new "$@" -o made.json || fail "weft new $*"
  "$weft" check made.json > /dev/null || fail "not valid: weft new $*"
  "$weft" fmt made.json -o again.json
  cmp made.json again.json || fail "not canonical: weft new $*"
}

made gemm
made gemm --m 0 --k 1 --n 33 --dtype bf16 --bias --relu
made gemm --k 784 --dtype int8 --requant 5:10 --range a=0:127 --name product --input a --output c
for layers in 784,256,256,10 33,65,7 1,1 10,0,31,32 784,10; do
  for dtype in fp32 bf16 int8; do
    made mlp --layers $layers --batch 5 --dtype $dtype --bias --relu
    made mlp --layers $layers --batch 0 --dtype $dtype --relu-last
  done
done
made mlp --layers 70,3 --segments 2
grep -q '"segments": 2' made.json || fail "segments set by hand are not written"
made mlp --layers 8,8,8 --dtype int8 --requant 3:4,5:6 --range x=-3:3 --range b2=0:1 --bias
[ "$("$weft" new mlp --layers 3,4 | md5sum)" = "$("$weft" new mlp --layers 3,4 | md5sum)" ] || fail "two runs differ"

refused 2 "--layers is missing" mlp
refused 2 "not \`3,,4\`" mlp --layers 3,,4
refused 2 "not \`3,4,\`" mlp --layers 3,4,
refused 2 "not \`-3,4\`" mlp --layers -3,4
refused 2 "not \`99999999999999999999\`" mlp --layers 99999999999999999999
refused 2 "--requant takes m:s" mlp --layers 3,4 --dtype int8 --requant 3
refused 2 "--requant takes m:s" mlp --layers 3,4 --dtype int8 --requant 3:64
refused 2 "--range takes NAME=LOW:HIGH" mlp --layers 3,4 --dtype int8 --range x=1
refused 2 "--segments is at most 32" mlp --layers 3,4 --segments 33
refused 2 "fp64" mlp --layers 3,4 --dtype fp64
refused 2 "use --dtype int8" gemm --requant 1:1
refused 2 "a range for 'X'" gemm --dtype int8 --range X=0:1
refused 1 "at least two widths" mlp --layers 3
refused 1 "use Int8" mlp --layers 3,4 --requant 1:1
refused 1 "a range for 'q'" mlp --layers 3,4 --dtype int8 --range q=0:1
refused 1 "is empty" mlp --layers 3,4 --dtype int8 --range x=2:1
refused 1 "2 requants for 4 layers" mlp --layers 3,4,5,6,7 --dtype int8 --requant 1:1,2:2
refused 1 "too large to address" gemm --m 9000000000000000000
refused 1 "/nowhere/" gemm -o /nowhere/x.json
echo "weft new: all as it should be"
