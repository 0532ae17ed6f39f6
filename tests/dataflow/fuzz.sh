#!/bin/bash
# The reader of MLIR text under libFuzzer: tests/dataflow/fuzz.sh BUILD-FOLDER PROGRAM WORK-FOLDER [SECONDS] [SEED]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
ninja -C "$1" weft_fuzz_mlir > /dev/null
mkdir -p "$3/corpus"
cp "$root"/tests/cases/dataflow/*.mlir "$root"/tests/cases/dataflow/seeds/*.mlir "$3/corpus"
cd "$3"
"$2" -max_total_time="${4:-300}" -max_len=4096 -timeout=20 -seed="${5:-1}" -dict="$root/tests/dataflow/mlir.dict" corpus > fuzz.log 2>&1 ||
  { tail -40 fuzz.log; echo "fuzz.sh: see $3/fuzz.log"; exit 1; }
tail -1 fuzz.log
