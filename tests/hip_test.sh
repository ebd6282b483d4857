#!/bin/sh
# Kernels of every program here as HIP, for waves of 64 and of 32 threads, through clang's parser and checks: over HIP's
# headers where there are some, else over declarations of what is used of them. What all texts include is read once a
# machine; of a contraction's plans two are enough for what differs by the numbers.
# Each program is checked for one of the machines, the next one for the other; with `all` for both.
#   hip_test.sh APLC SOURCE BINARY [all]
all=${4:-} turn=0
aplc=$1 source=$2 work=$(mktemp -d "$3/hip.XXXXXX")
trap 'rm -rf "$work"' EXIT
clang=$(command -v "${APL_CLANG:-clang}") || {
  echo "skipped: there is no clang"
  exit 77
}
include="-nogpuinc -include $source/tests/hip/builtins.h"
[ -e /usr/include/hip/hip_runtime.h ] && include="-include hip/hip_runtime.h"
failed=0 checked=0
# hip FILE MACHINE OPTION...: what clang says of it.
hip() {
  text=$1 machine=$2
  shift 2
  # shellcheck disable=SC2086
  "$clang" -x hip --cuda-device-only --offload-arch="${machine#*:}" -nogpulib $include -std=c++17 -fsyntax-only \
    -Werror=implicit-function-declaration -Wno-unused -Wno-cuda-compat -I"$source" -I"$source/runtime/device" "$@" \
    "$text" > "$work/said" 2>&1
}
for program in "$source"/examples/*.fut "$source"/tests/programs/*.fut "$source"/tests/programs/blocks/*.fut; do
  machines="mi300:gfx90a gfx1100:gfx1030"
  turn=$((1 - turn))
  [ -n "$all" ] || { [ $turn = 0 ] && machines=${machines% *} || machines=${machines#* }; }
  for machine in $machines; do
    kernels=$work/$(basename "$program" .fut).${machine%:*}.hip
    if ! "$aplc" hip --kernels --plans=2 --device="${machine%:*}" "$program" -o "$kernels" 2> "$work/said"; then
      # Wrong on purpose, or there are no kernels for any device.
      "$aplc" cuda --kernels --plans=2 "$program" -o "$kernels" 2> /dev/null || continue
      echo "FAILED $program for $machine"
      cat "$work/said"
      failed=$((failed + 1))
      continue
    fi
    [ -s "$kernels" ] || continue
    common=$work/${machine%:*}
    [ -e "$common.pch" ] || {
      sed '/^#include/q' "$kernels" > "$common.hip"
      hip "$common.hip" "$machine" -Xclang -emit-pch -Xclang -o -Xclang "$common.pch" || cat "$work/said"
    }
    hip "$kernels" "$machine" -Xclang -include-pch -Xclang "$common.pch" || {
      echo "FAILED $program for $machine"
      head -20 "$work/said"
      failed=$((failed + 1))
    }
    checked=$((checked + 1))
  done
done
echo "$checked texts of kernels, $failed not HIP"
[ "$failed" = 0 ] && [ "$checked" -gt 20 ]
