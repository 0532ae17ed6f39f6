#!/bin/sh
# The rules of the house that a compiler does not know; ./check runs it. Prints each fault as FILE:LINE: what, then the
# lengths of functions and files; exit status 1 when there is a fault.
set -eu
cd "$(dirname "$0")/.."

# Files of more than 800 lines that may be: one name a line, with the reason beside it.
long_files='
include/weft/ir.h every type of a spatial program: a library has one public header
'

faults=$(mktemp)
sources=$(mktemp)
trap 'rm -f "$faults" "$sources"' EXIT
{ git ls-files -co --exclude-standard 2> /dev/null || find . -type f -not -path './build/*' | sed 's|^\./||'; } |
  while IFS= read -r file; do [ -f "$file" ] && printf '%s\n' "$file"; done | sort -u > "$sources"
c_files=$(grep -E '\.[ch]$' "$sources")
text_files=$(grep -E '\.(c|h|cmake|sh|md)$|CMakeLists\.txt$|^(check|demo)$|^\.ci/' "$sources")

grep -E '\.(cc|cpp|cxx|hpp|hh)$' "$sources" | sed 's/$/:1: weft is written in C/' >> "$faults" || true
grep -nE 'TO[D]O|FIX[M]E|^[[:space:]]*#[[:space:]]*if[[:space:]]+[01]\b' $text_files |
  sed -E 's/^([^:]*:[0-9]+):.*/\1: unfinished or switched-off text/' >> "$faults" || true
grep -nE '(^|[^A-Za-z0-9_.])/(home|root|work|Users)/' $text_files |
  sed -E 's/^([^:]*:[0-9]+):.*/\1: the path of one machine/' >> "$faults" || true

# Code without comments and string contents, then the rules over it and the lengths of functions. A function begins at a
# line in column 0 with a parenthesis and ends at a brace in column 0 (or on its own line); clang-format sees to that.
printf '%s\n' $c_files | sort | xargs awk -v long_files="$long_files" '
  function fault(text) { print FILENAME ":" FNR ": " text }
  function bare(line,    out, i, c, quote) { # strips comments and the contents of quotes
    out = ""; quote = ""
    for (i = 1; i <= length(line); i++) {
      c = substr(line, i, 1)
      if (comment) { if (c == "*" && substr(line, i + 1, 1) == "/") { comment = 0; i++ } continue }
      if (quote != "") { if (c == "\\") i++; else if (c == quote) { quote = ""; out = out c } continue }
      if (c == "/" && substr(line, i + 1, 1) == "*") { comment = 1; i++; continue }
      if (c == "/" && substr(line, i + 1, 1) == "/") break
      if (c == "\"" || c == "\047") quote = c
      out = out c
    }
    return out
  }
  function room() { return FILENAME ~ /\// ? substr(FILENAME, 1, index(FILENAME, "/") - 1) : "" }
  function base() { return FILENAME ~ /\// ? substr(FILENAME, match(FILENAME, /[^\/]*$/)) : FILENAME }
  function ended(lines) {
    if (lines > 120) fault("this function has " lines " lines; at most 120")
    if (product) print "@function", lines
  }
  function file_ended() {
    if (last_file == "") return
    if (last_line > 800 && index("\n" long_files, "\n" last_file " ") == 0)
      print last_file ":1: " last_line " lines; split it by subject (at most 800)"
    if (last_product) print "@file", last_line
  }
  FNR == 1 {
    file_ended()
    comment = 0; start = 0
    outside = room() ~ /^(tools|tests|benchmarks)$/
    product = !(room() ~ /^(tests|benchmarks)$/)
    speaks = outside || (room() == "runtime-mpi" && base() ~ /^main/)
    mpi = room() ~ /^(tests|benchmarks)$/ || base() ~ /mpi/ || FILENAME == "include/weft/program_run.h"
    omp = room() == "runtime-mpi" || room() == "benchmarks" || FILENAME == "base/parallel.c"
  }
  { last_file = FILENAME; last_line = FNR; last_product = product }
  {
    include = /^[ \t]*#[ \t]*include[ \t]*"/ ? $0 : ""
    line = bare($0)
  }
  include != "" && room() != "tests" {
    sub(/^[^"]*"/, "", include); sub(/".*/, "", include)
    if (include !~ /^weft\// && include ~ /\//) fault("the header " include " belongs to another folder")
  }
  !speaks && line ~ /(^|[^A-Za-z0-9_])((v|f|vf)?printf|f?puts|f?putc|putchar|fwrite|perror|abort|_?exit|assert_fail)[ ]*\(/ {
    fault("libraries never print or exit")
  }
  !speaks && line ~ /(^|[^A-Za-z0-9_])(stderr|stdout)([^A-Za-z0-9_]|$)/ { fault("libraries never print") }
  !mpi && line ~ /(^|[^A-Za-z0-9_])(MPI_[A-Z]|#[ ]*include <mpi\.h>)/ { fault("MPI stays in files with mpi in their name") }
  !omp && line ~ /#[ ]*pragma[ ]+omp/ { fault("parallel loops go through weft_parallel_for") }
  !start && line ~ /^[A-Za-z_].*\(/ && line !~ /^(typedef|struct|enum|union)/ { start = FNR; body = 0 }
  start && !body && line ~ /\{.*\}[ ]*$/ { ended(FNR - start + 1); start = 0 }
  start && !body && line ~ /;[ ]*$/ { start = 0 }
  start && line ~ /\{[ ]*$/ { body = 1 }
  start && line ~ /^\}/ { if (line !~ /^\}[ ]*;/) ended(FNR - start + 1); start = 0 }
  END { file_ended() }
' > "$faults.lines" || true
grep -v '^@' "$faults.lines" >> "$faults" || true

report() { # NAME KIND: the median, p90 and largest of the numbers of one kind
  sed -n "s/^@$2 //p" "$faults.lines" | sort -n | awk -v name="$1" '
    { n[NR] = $1 } END { if (NR) printf "%s: %d, lines: median %d, p90 %d, max %d\n", name, NR, n[int((NR + 1) / 2)], n[int((NR * 9 + 9) / 10)], n[NR] }'
}
report functions function
report "files of C" file
rm -f "$faults.lines"

status=0
if [ -s "$faults" ]; then
  cat "$faults"
  echo "house: $(wc -l < "$faults") faults"
  status=1
fi
# Versions of clang-format differ in what they do: only 14 judges.
if clang-format --version 2> /dev/null | grep -q 'version 14\.'; then
  unformatted=$(printf '%s\n' $c_files | xargs clang-format --dry-run 2>&1 | sed -n 's/:[0-9]*:[0-9]*: warning: code should be.*//p' | sort -u)
  if [ -n "$unformatted" ]; then
    echo "not formatted; run clang-format -i on:" $unformatted
    status=1
  fi
else
  echo "house: skipped: formatting (clang-format 14 is not there)"
fi
exit $status
