#!/bin/sh
# Installs the Debian packages weft needs and this machine lacks. Says what it installs; does nothing when all are there.
#   tools/setup.sh               what ./check needs: build and tests
#   tools/setup.sh --build       what ./demo needs: build only
#   tools/setup.sh --benchmarks  the libraries the benchmarks compare with, as well
#   tools/setup.sh --list        prints the packages of the other options instead of installing them
set -eu

build="gcc libc6-dev cmake ninja-build pkg-config libopenmpi-dev openmpi-bin libhdf5-openmpi-dev libcmocka-dev"
tests="clang libclang-rt-14-dev libomp-dev clang-format libmpfr-dev"
benchmarks="libopenblas-dev libblis-dev libscalapack-openmpi-dev libyajl-dev"

wanted="$build $tests"
list=no
for option in "$@"; do
  case $option in
    --build) wanted=$build ;;
    --benchmarks) wanted="$build $tests $benchmarks" ;;
    --list) list=yes ;;
    *) echo "tools/setup.sh: unknown option $option; known: --build, --benchmarks, --list" >&2; exit 2 ;;
  esac
done
if [ $list = yes ]; then
  printf '%s\n' $wanted
  exit 0
fi

if ! command -v dpkg-query > /dev/null; then
  echo "tools/setup.sh: not a Debian system; please see to it that these are installed: $wanted" >&2
  exit 0
fi
missing=
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2> /dev/null | sed -n 's/^installed //p' || true)
for package in $wanted; do
  echo "$installed" | grep -qx -e "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo > /dev/null; then
    echo "tools/setup.sh: these packages are missing and only root can install them:$missing" >&2
    echo "hint: as root, run: apt-get update && apt-get install$missing" >&2
    exit 3
  fi
  as_root=sudo
fi
echo "installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_missing() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends $missing > "$log" 2>&1
}
# Package lists may be old or absent: they are fetched once, when the first attempt fails.
if ! install_missing; then
  echo "fetching the package lists"
  $as_root apt-get update -q > "$log" 2>&1 || { cat "$log" >&2; exit 3; }
  install_missing || { cat "$log" >&2; exit 3; }
fi
