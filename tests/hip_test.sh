#!/bin/sh
# Kernels of every program here as HIP, for waves of 64 and of 32 threads, through clang's parser and checks: over HIP's
# headers where there are some, else over declarations of what is used of them.
#   hip_test.sh APLC SOURCE BINARY
aplc=$1 source=$2 work=$(mktemp -d "$3/hip.XXXXXX")
trap 'rm -rf "$work"' EXIT
clang=$(command -v "${APL_CLANG:-clang}") || {
  echo "skipped: there is no clang"
  exit 77
}
include="-nogpuinc -include $source/tests/hip/builtins.h"
[ -e /usr/include/hip/hip_runtime.h ] && include="-include hip/hip_runtime.h"
failed=0 checked=0
for program in "$source"/examples/*.fut "$source"/tests/programs/*.fut "$source"/tests/programs/blocks/*.fut; do
  for machine in mi300:gfx90a gfx1100:gfx1030; do
    kernels=$work/$(basename "$program" .fut).${machine%:*}.hip
    if ! "$aplc" hip --kernels --device="${machine%:*}" "$program" -o "$kernels" 2> "$work/said"; then
      # Wrong on purpose, or there are no kernels for any device.
      "$aplc" cuda --kernels "$program" -o "$kernels" 2> /dev/null || continue
      echo "FAILED $program for $machine"
      cat "$work/said"
      failed=$((failed + 1))
      continue
    fi
    [ -s "$kernels" ] || continue
    # shellcheck disable=SC2086
    "$clang" -x hip --cuda-device-only --offload-arch="${machine#*:}" -nogpulib $include -std=c++17 -fsyntax-only \
      -Werror=implicit-function-declaration -Wno-unused -I"$source" -I"$source/runtime/device" "$kernels" \
      > "$work/said" 2>&1 || {
      echo "FAILED $program for $machine"
      head -20 "$work/said"
      failed=$((failed + 1))
    }
    checked=$((checked + 1))
  done
done
echo "$checked texts of kernels, $failed not HIP"
[ "$failed" = 0 ] && [ "$checked" -gt 20 ]
