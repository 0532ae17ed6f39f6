#!/bin/sh
# Breaks each rule of tools/house_check.sh in a folder of its own and sees it named with its place, and nothing else:
# house_rules_test.sh SOURCE-FOLDER WORK-FOLDER
set -eu
work=$2/house-rules
rm -rf "$work"
mkdir -p "$work/tools" "$work/ir" "$work/base" "$work/runtime-mpi"
cp "$1/tools/house_check.sh" "$1/.clang-format" "$work/tools/"
cd "$work"
export GIT_CEILING_DIRECTORIES=$2

cat > ir/bad.c << 'END'
#include <mpi.h>
#include "../data/internal.h"
/* printf("said in a comment"), MPI_Send */
#if OFF
#endif
static int table[] = {1, 2};
int declared(int a,
             int b);
static const char *text = "printf(stderr) MPI_Init \" // exit(1)";
int one_line(void) { return printf("x"); }
int two_lines(int a,
              int b) {
  // exit(1)
  fputs("", stderr);
  MPI_Init(0, 0);
#pragma omp parallel for
  exit(snprintf(0, 0, "exit(1)"));
}
END
sed -i "s/OFF/0/" ir/bad.c
printf '// TO%s: later\nconst char *path = "/%s/me/x";\n' DO home > ir/words.c
{ echo 'int long_function(void) {'; yes '  work();' | head -n 125; echo '}'; yes 'int filler;' | head -n 700; } > ir/long.c
printf '#pragma omp parallel\n' > base/parallel.c
printf 'void f(void) {\n  MPI_Init(0, 0);\n#pragma omp for\n}\n' > runtime-mpi/transport_mpi.c
printf 'int main(void) {\n  puts("");\n  exit(1);\n}\n' > tools/main.c
touch ir/other.cpp

cat > expected << 'END'
ir/bad.c:1: MPI stays in files with mpi in their name
ir/bad.c:10: libraries never print or exit
ir/bad.c:14: libraries never print
ir/bad.c:14: libraries never print or exit
ir/bad.c:15: MPI stays in files with mpi in their name
ir/bad.c:16: parallel loops go through weft_parallel_for
ir/bad.c:17: libraries never print or exit
ir/bad.c:2: the header ../data/internal.h belongs to another folder
ir/bad.c:4: unfinished or switched-off text
ir/long.c:127: this function has 127 lines; at most 120
ir/long.c:1: 827 lines; split it by subject (at most 800)
ir/other.cpp:1: weft is written in C
ir/words.c:1: unfinished or switched-off text
ir/words.c:2: the path of one machine
END
if tools/house_check.sh > output; then
  echo "the faults were not counted"
  exit 1
fi
grep -E '^[a-z/_-]+\.[a-z]+:[0-9]+: ' output | LC_ALL=C sort > found
LC_ALL=C sort expected | diff - found
rm ir/* expected output found
tools/house_check.sh > /dev/null
