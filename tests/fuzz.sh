#!/bin/bash
# A target under libFuzzer: tests/fuzz.sh BUILD-FOLDER PROGRAM WORK-FOLDER DICTIONARY MAX-LENGTH CORPUS-FOLDER...
# The corpus begins with the files of the folders that are no longer than MAX-LENGTH. WEFT_FUZZ_SECONDS (300) and
# WEFT_FUZZ_SEED (1) say how long and from where.
set -euo pipefail
build=$1 program=$2 work=$3 dictionary=$4 longest=$5
shift 5
ninja -C "$build" "weft_$(basename "$program")" > /dev/null
mkdir -p "$work/corpus"
for folder in "$@"; do
  find "$folder" -maxdepth 1 -type f -size "-${longest}c" -exec cp -t "$work/corpus" {} +
done
cd "$work"
"$program" -max_total_time="${WEFT_FUZZ_SECONDS:-300}" -max_len="$longest" -timeout=20 -seed="${WEFT_FUZZ_SEED:-1}" -dict="$dictionary" \
  corpus > fuzz.log 2>&1 || { tail -40 fuzz.log; echo "fuzz.sh: see $work/fuzz.log"; exit 1; }
tail -1 fuzz.log
