#!/usr/bin/env bash
# The memory of generated C libraries: each program's library with client.c, under the sanitizers and valgrind.
#   check.sh APLC KIND[,KIND...] PROGRAM.fut...
# KIND: faults     every allocation fails once, for each entry (gcc)
#       gcc clang  address and undefined-behaviour sanitizers: values, and faults (FAULT_STEP=7: every 7th)
#       tsan       thread sanitizer (clang): eight contexts in eight threads
#       valgrind   values, and faults (every 20 * FAULT_STEP-th)
# Prints what is wrong, then a line. Exit code 1 if something is, 77 if a tool is not there. JOBS programs at a time.
set -u
aplc=$1 kinds=${2//,/ }
shift 2
here=$(cd "$(dirname "$0")" && pwd)
export aplc here CLANG=${CLANG:-clang-14} CC=${CC:-gcc} FAULT_STEP=${FAULT_STEP:-1}

for kind in $kinds; do
  case $kind in
    faults) tools=$CC ;;
    gcc) tools=$CC ;;
    clang | tsan) tools=$CLANG ;;
    valgrind) tools="$CC valgrind" ;;
    *) echo "no such kind: $kind" && exit 64 ;;
  esac
  for tool in $tools; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is not on this machine"; exit 77; }
  done
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export folder
for kind in $kinds; do
  case $kind in
    gcc) with="$CC -fsanitize=address,undefined" ;;
    clang) with="$CLANG -fsanitize=address,undefined" ;;
    tsan) with="$CLANG -fsanitize=thread" ;;
    *) continue ;;
  esac
  echo 'int main(void) { return 0; }' >"$folder/empty.c"
  $with "$folder/empty.c" -o "$folder/empty" 2>/dev/null && "$folder/empty" ||
    { echo "skipped: $with makes no program on this machine"; exit 77; }
done
wrap=-Wl
for name in malloc calloc realloc aligned_alloc free; do wrap+=,--wrap=$name; done
export wrap

# One program, one kind; says nothing if all is well.
check() {
  local kind=$1 program=$2 name
  name=$kind-$(basename "$program" .fut)
  local compiler=$CC flags="-O1 -g -fwrapv -Wno-unknown-pragmas" modes="values" run=()
  case $kind in
    faults) modes="faults:1" ;;
    gcc) flags+=" -fsanitize=address,undefined -fno-sanitize-recover=all" modes="values faults:$FAULT_STEP" ;;
    clang)
      compiler=$CLANG modes="values faults:$FAULT_STEP"
      flags+=" -fsanitize=address,undefined -fno-sanitize-recover=all" ;;
    tsan) compiler=$CLANG flags+=" -fsanitize=thread" modes="threads" ;;
    valgrind)
      modes="values faults:$((20 * FAULT_STEP))"
      run=(valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=all) ;;
  esac
  (
    "$aplc" c --library -o "$folder/$name" "$program" &&
      $compiler $flags $wrap -DLIBRARY="\"$folder/$name.c\"" "$here/client.c" -o "$folder/$name" -lm -lpthread || exit 1
    for mode in $modes; do
      TSAN_OPTIONS=halt_on_error=1 ${run[@]+"${run[@]}"} "$folder/$name" "${mode%%:*}" "${mode##*:}" \
        || { echo "$mode: exit code $?"; exit 1; }
    done
  ) >"$folder/$name.said" 2>&1 || { echo "== $kind $program"; head -c 4000 "$folder/$name.said"; touch "$folder/failed"; }
  rm -f "$folder/$name" "$folder/$name.c"
}
export -f check

for kind in $kinds; do
  printf '%s\n' "$@" | xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'check "$0" "$1"' "$kind" {}
done
[ ! -e "$folder/failed" ] || exit 1
echo "$# programs: $kinds: clean"
