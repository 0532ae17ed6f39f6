#!/bin/sh
# Installs the Debian packages weft needs and this machine lacks. Says what it installs; does nothing when all are there.
#   tools/setup.sh               what ./check needs: build and tests
#   tools/setup.sh --build       what ./demo needs: build only
#   tools/setup.sh --benchmarks  the libraries the benchmarks compare with, as well
#   tools/setup.sh --list        prints the packages of the other options instead of installing them
set -eu

build="gcc libc6-dev cmake ninja-build pkg-config libopenmpi-dev openmpi-bin libhdf5-openmpi-dev libcmocka-dev"
tests="clang libclang-rt-14-dev libomp-dev clang-format libmpfr-dev"
compared="mlir-19-tools mlir-22-tools" # tests compare with these where they can be had
benchmarks="libopenblas-dev libblis-dev libscalapack-openmpi-dev libyajl-dev"

wanted="$build $tests"
wished=$compared
list=no
for option in "$@"; do
  case $option in
    --build) wanted=$build wished= ;;
    --benchmarks) wanted="$build $tests $benchmarks" ;;
    --list) list=yes ;;
    *) echo "tools/setup.sh: unknown option $option; known: --build, --benchmarks, --list" >&2; exit 2 ;;
  esac
done
if [ $list = yes ]; then
  printf '%s\n' $wanted $wished
  exit 0
fi

if ! command -v dpkg-query > /dev/null; then
  echo "tools/setup.sh: not a Debian system; please see to it that these are installed: $wanted" >&2
  exit 0
fi
# Prints those of the packages named that are not installed.
not_installed() {
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2> /dev/null | sed -n 's/^installed //p' || true)
  for package in "$@"; do
    echo "$installed" | grep -qx -e "$package" || echo "$package"
  done
}
missing=$(not_installed $wanted | tr '\n' ' ')
more=
[ -z "$wished" ] || more=$(not_installed $wished | tr '\n' ' ')
[ -n "$missing$more" ] || exit 0

as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo > /dev/null; then
    [ -n "$missing" ] || { echo "tools/setup.sh: not installed, tests that compare with it are left out: $more" >&2; exit 0; }
    echo "tools/setup.sh: these packages are missing and only root can install them: $missing" >&2
    echo "hint: as root, run: apt-get update && apt-get install $missing" >&2
    exit 3
  fi
  as_root=sudo
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install_all() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -q --no-install-recommends "$@" > "$log" 2>&1
}
# Package lists may be old or absent: they are fetched once, when the first attempt fails.
fetched=no
install() {
  echo "installing $*"
  install_all "$@" && return
  [ $fetched = no ] || return 1
  fetched=yes
  echo "fetching the package lists"
  $as_root apt-get update -q > "$log" 2>&1 && install_all "$@"
}
[ -z "$missing" ] || install $missing || { cat "$log" >&2; exit 3; }
for package in $more; do
  install "$package" || echo "tools/setup.sh: $package cannot be had here; tests that compare with it are left out" >&2
done
