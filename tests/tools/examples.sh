#!/bin/bash
# Every example that --help prints works as printed, in an empty directory: tests/tools/examples.sh BUILD-FOLDER WORK-FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
work=$2
PATH=$build/tools:$PATH
rm -rf "$work"
mkdir -p "$work"
failed=0 run=0

# example COMMAND...: runs the lines after "example:" of its help.
example() {
  local folder=$work/${*//[^a-z0-9]/-}
  mkdir -p "$folder"
  weft "$@" --help > "$folder.txt" || { echo "weft $* --help fails"; failed=1; }
  sed -n '/^example:$/,$p' "$folder.txt" | sed '1d; s/^  //' > "$folder.sh"
  [ -s "$folder.sh" ] || { echo "weft $* --help has no example"; failed=1; return 0; }
  run=$((run + 1))
  (cd "$folder" && sh -e "$folder.sh" > "$folder.out" 2>&1) ||
    { echo "the example of weft $* --help fails:"; cat "$folder.sh" "$folder.out"; failed=1; }
}

# The names of a list of commands or verbs.
names() { sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'; }

for command in $(weft --help | names); do
  case $command in
  bench) continue ;; # it measures for minutes
  esac
  if weft $command --help | grep -q '^verbs '; then
    for verb in $(weft $command --help | names); do example $command $verb; done
  else
    example $command
  fi
done
[ $run -ge 30 ] || { echo "only $run examples"; failed=1; }
echo "$run examples"
exit $failed
