#!/bin/bash
# The steps of ./demo, on a weft that is built: tools/demo.sh BUILD-FOLDER WORK-FOLDER
set -euo pipefail
build=$1
work=$2
samples=$(cd "$(dirname "$0")/.." && pwd)/data/samples
PATH=$(cd "$build" && pwd)/tools:$PATH
mkdir -p "$work"
cd "$work"

# More ranks than cores are welcome here; a root user (a container) has to say so.
launch="mpirun --oversubscribe --bind-to none"
[ "$(id -u)" != 0 ] || launch="$launch --allow-run-as-root"

run() {
  echo "\$ $*"
  "$@"
}

echo "A trained network (784-256-256-10) and 1,000 digits it has not seen, from data/samples/mnist-mlp.h5"
run weft new mlp --layers 784,256,256,10 --batch 1000 --dtype fp32 --bias --relu --output logits -o digits.json
run weft tensor rename "$samples/mnist-mlp.h5" x_test=x -o digits.h5

verdicts=()
for chips in 1 2 4; do
  echo
  run weft compile digits.json --chips $chips --target cpu -o chips-$chips
  run ninja -C chips-$chips --quiet
  run $launch -n $chips chips-$chips/run --in digits.h5 --out result-$chips.h5
  accuracy=$(weft tensor accuracy --logits result-$chips.h5:logits --labels digits.h5:labels)
  if [ $chips = 1 ]; then
    verdicts+=("1 chip:  $accuracy")
  else
    run weft diff result-$chips.h5 result-1.h5 --max-ulp 0
    verdicts+=("$chips chips: $accuracy, identical to 1 chip")
  fi
done

echo
printf '%s\n' "${verdicts[@]}"
