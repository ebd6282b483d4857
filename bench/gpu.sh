#!/usr/bin/env bash
# GPU tests and benchmark on this machine's NVIDIA GPU, beside cuBLAS and torch.einsum in the same run.
#   bench/gpu.sh [BIN] [OUT]    BIN: folder with apl_program_tests, apl_unit_tests, apl_bench (default: build/release/bin)
#                               OUT: folder for logs and JSON (default: bench/results)
# Exit status 0 only if every test and every check passed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${1:-build/release/bin}
out=${2:-bench/results}
mkdir -p "$out"
status=0
step() { printf '\n== %s\n' "$*"; }
note() { [ "$1" -eq 0 ] || { status=1; echo "FAILED ($2)"; }; }

step "device"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu --format=csv,noheader

for sizes in "" --large; do
  step "programs on cuda against the interpreter $sizes"
  log=$out/programs$sizes.log
  "$bin/apl_program_tests" --backends=cuda $sizes examples/*.fut >"$log" 2>&1
  note $? "programs; see $log"
  tail -n 12 "$log"
done

step "unit tests that need a device"
"$bin/apl_unit_tests" --source-file='*cuda_test.cpp' --no-intro=true >"$out/unit.log" 2>&1
note $? "unit tests; see $out/unit.log"
tail -n 4 "$out/unit.log"

if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    step "compute-sanitizer --tool $tool"
    timeout 150 compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 5 \
      "$bin/apl_bench" --backend=cuda --small --runs=1 >"$out/$tool.log" 2>&1
    note $? "$tool; see $out/$tool.log"
    grep -E "ERROR SUMMARY|RACECHECK SUMMARY|^mm|^sd" "$out/$tool.log" | tail -n 14
  done
else
  echo "compute-sanitizer is not installed: memcheck and racecheck not run"
fi

step "benchmark"
"$bin/apl_bench" --backend=cuda --json="$out/apl.json" 2>&1 | tee "$out/bench.log"
note "${PIPESTATUS[0]}" "benchmark"

step "peers"
if python3 -c 'import torch' 2>/dev/null; then
  python3 bench/peers.py --json="$out/peers.json" >"$out/peers.log" 2>&1
  note $? "peers; see $out/peers.log"
fi
python3 bench/table.py "$out" || status=1
exit $status
