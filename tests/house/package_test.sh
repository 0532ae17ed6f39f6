#!/bin/sh
# Installs weft into a folder of its own, builds the project in consumer/ against it, runs what that built, and sees that a
# second build does nothing and a changed model is compiled again: package_test.sh BUILD-FOLDER CMAKE COMPILER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$1/package-test
rm -rf "$work"
"$2" --install "$1" --prefix "$work/prefix" > /dev/null
cp -R "$here/consumer" "$work/consumer"
export PATH="$work/prefix/bin:$PATH"
cd "$work/consumer"
weft new mlp --layers 33,65,7 --batch 5 --dtype fp32 --bias --relu -o model.json
"$2" -G Ninja -S . -B build -DCMAKE_C_COMPILER="$3" -DCMAKE_PREFIX_PATH="$work/prefix" > configure.log || { cat configure.log; exit 1; }
ninja -C build > build.log || { cat build.log; exit 1; }
build/uses_base
weft tensor make --program model.json --seed 1 -o in.h5
build/digits/run-local --in in.h5 --out local.h5
weft eval model.json --in in.h5 --out expected.h5
weft diff local.h5 expected.h5 --max-ulp 0

second=$(ninja -C build)
case $second in
  *"no work to do"*) ;;
  *) echo "a second build is not idle: $second"; exit 1 ;;
esac
weft new mlp --layers 33,65,9 --batch 5 --dtype fp32 --bias --relu -o model.json
third=$(ninja -C build)
case $third in
  *"Compiling model.json"*) ;;
  *) echo "a changed model is not compiled again: $third"; exit 1 ;;
esac

export PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name weft.pc)")
"$3" uses_base.c -o uses_base $(pkg-config --cflags --static --libs weft)
./uses_base
rm -rf "$work"
