#!/usr/bin/env bash
# GPU tests and benchmark on this machine's NVIDIA GPU, beside cuBLAS and torch.einsum in the same run.
#   bench/gpu.sh [BIN [OUT [STEPS]]]
#     BIN: folder with apl_program_tests, apl_unit_tests, apl_contraction_tests, apl_bench (default: build/release/bin)
#     OUT: folder for logs and JSON (default: bench/results)
#     STEPS: some of programs,unit,library,contractions,plans,huge,sanitizer,bench,ablation,variants,ncu,peers,sparse,
#     sparse-formats,sparse-mixed,sparse-programs,sparse-check,constant,engines,kernel-files,reductions
#     (default: all)
#   APL_GPU_BACKEND=emulate APL_GPU_SMALL=1 tries contractions, plans, huge, ablation and variants out without a GPU.
# Exit status 0 only if every test and every check passed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${1:-build/release/bin}
out=${2:-bench/results}
steps=${3:-programs,unit,library,contractions,plans,huge,sanitizer,bench,ablation,variants,ncu,peers,sparse,sparse-formats,sparse-mixed,sparse-programs,sparse-check,constant,engines,kernel-files,reductions}
mkdir -p "$out"
status=0
wanted() { [[ ,$steps, == *,$1,* ]]; }
step() { printf '\n== %s\n' "$*"; }
note() { [ "$1" -eq 0 ] || { status=1; echo "FAILED ($2)"; }; }

step "device"
nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu --format=csv,noheader

if wanted programs; then for sizes in "" --large; do
  step "programs on cuda against the interpreter $sizes"
  log=$out/programs$sizes.log
  "$bin/apl_program_tests" --backends=cuda $sizes examples/*.fut >"$log" 2>&1
  note $? "programs; see $log"
  tail -n 12 "$log"
done; fi

if wanted unit; then
  step "unit tests that need a device"
  "$bin/apl_unit_tests" --test-suite=device --no-intro=true >"$out/unit.log" 2>&1
  note $? "unit tests; see $out/unit.log"
  tail -n 4 "$out/unit.log"
fi

# As a stranger uses them; the kernel's file with nvcc where there is one.
if wanted library; then
  step "a CUDA library, and a kernel on its own"
  log=$out/library.log
  folder=$(mktemp -d)
  (
    set -ex
    "$bin/aplc" cuda --library -o "$folder/mm0" examples/mm0.fut
    cc -O2 -I"$folder" "$folder/mm0.c" examples/library/main.c -lm -ldl -lpthread -o "$folder/product"
    [ "$("$folder/product")" = $'-2 0 24\n29 -17 -8' ]
    cp tests/library/values.fut "$folder"  # messages have the name as it is given
    aplc=$(realpath "$bin/aplc")
    (cd "$folder" && "$aplc" cuda --library -o bodies values.fut)
    cc -O2 -I"$folder" "$folder/bodies.c" tests/library/check.c -lm -ldl -lpthread -o "$folder/check"
    "$folder/check"
    for n in 512 4096; do
      "$bin/aplc" cuda --emit=kernel -e mm0 --size a=$n --size b=$n --size q=$n -o "$folder/mm0.cu" examples/mm0.fut
      command -v nvcc || break
      nvcc -O3 -std=c++17 -arch=native -I"$folder" bench/kernel_file.cu -o "$folder/kernel_file"
      "$folder/kernel_file" $n $n $n
      "$folder/kernel_file" $n $((n - 7)) $((n + 5))
    done
  ) >"$log" 2>&1
  note $? "library; see $log"
  grep TFLOP "$log"
  rm -rf "$folder"
fi

# Side by side, as compilers take most of the time: COUNT in parts of 25.
contractions() {
  local name=$1 count=$2 seed parts=()
  shift 2
  for ((seed = 1; seed <= count; seed += 25)); do
    while (($(jobs -rp | wc -l) >= 8)); do wait -n; done
    (
      "$bin/apl_contraction_tests" --seed="$seed" --count=25 --batch=25 --backends="${APL_GPU_BACKEND:-cuda}" \
        --shrink-seconds=20 "$@" >"$out/$name-$seed.log" 2>&1
      echo $? >"$out/$name-$seed.status"
    ) &
    parts+=("$out/$name-$seed")
  done
  wait
  local part result=0
  for part in "${parts[@]}"; do
    [ "$(cat "$part.status")" = 0 ] || { result=1; grep -A12 FAILED "$part.log" | cut -c1-300 | head -n 40; }
    tail -n 1 "$part.log"
    rm -f "$part.status"
  done
  note $result "$name; see $out/$name-*.log"
}

if wanted contractions; then
  step "the thesis' contractions with 300 plans and sizes, checked by sums"
  contractions thesis "$([ -n "${APL_GPU_SMALL:-}" ] && echo 25 || echo 300)" --thesis ${APL_GPU_SMALL:+--small}
  step "200 random contractions with random plans against the interpreter"
  contractions random "$([ -n "${APL_GPU_SMALL:-}" ] && echo 25 || echo 200)"
fi

if wanted plans; then
  step "what the model chooses for 200 random contractions of rank up to 10: launched, spills counted"
  contractions plans "$([ -n "${APL_GPU_SMALL:-}" ] && echo 8 || echo 200)" --defaults ${APL_GPU_SMALL:+--small}
  grep -h spills "$out"/plans-*.log | grep -v '^defaults' | head -n 20
fi

if wanted huge; then
  step "results of more than 2^31 elements"
  "$bin/apl_contraction_tests" --huge --backends="${APL_GPU_BACKEND:-cuda}" ${APL_GPU_SMALL:+--small} >"$out/huge.log" 2>&1
  note $? "huge; see $out/huge.log"
  tail -n 3 "$out/huge.log"
fi

if ! wanted sanitizer; then
  :
elif command -v compute-sanitizer >/dev/null; then
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

backend=${APL_GPU_BACKEND:-cuda}
if wanted ablation; then
  step "ablation"
  "$bin/apl_bench" --ablation --backend="$backend" ${APL_GPU_SMALL:+--small} --json="$out/ablation.json" 2>&1 |
    tee "$out/ablation.log"
  note "${PIPESTATUS[0]}" "ablation"
fi

if wanted variants; then
  step "tiled, split, not tiled"
  "$bin/apl_bench" --variants --backend="$backend" ${APL_GPU_SMALL:+--small} --json="$out/variants.json" 2>&1 |
    tee "$out/variants.log"
  note "${PIPESTATUS[0]}" "variants"
fi

if wanted ncu; then
  step "bank conflicts by Nsight Compute, beside those predicted"
  timeout 200 python3 bench/ncu.py "$bin/apl_bench" --json="$out/ncu.json" 2>&1 | tee "$out/ncu.log"
  note "${PIPESTATUS[0]}" "ncu"
fi

# Sparse products, every result compared in full: beside cuSPARSE and dense cuBLAS; then every template under the
# sanitizer.
if wanted sparse; then
  step "sparse products"
  "$bin/apl_sparse_gpu" ${APL_SPARSE_FOLDER:+--folder="$APL_SPARSE_FOLDER"} --json="$out/sparse.json" 2>&1 |
    tee "$out/sparse.log"
  note "${PIPESTATUS[0]}" "sparse products"
  python3 bench/sparse_gpu/dated.py "$out/sparse.json" "$out"
fi
# In f16 and f32, beside all formats of cuSPARSE that are exact, and plans that the models choose.
if wanted sparse-formats; then
  for type in f16 f32; do
    step "composed and other sparse matrices in $type, beside all of cuSPARSE's formats"
    "$bin/apl_sparse_gpu" --type=$type --operators=spmm --widths=128 --searched --formats --json="$out/sparse-$type.json" \
      --matrices=banded_65536_16,arrow_20000_8,longrows_20000_8,levels_32768_30,window_4096_64,halves_16384_24,bandrows_16384_8,pubmed_syn,ppi_syn,arxiv_syn,768x768_s90,blocks_3072x768_492,logsparse,3072x768_s95 \
      2>&1 | tee "$out/sparse-$type.log"
    note "${PIPESTATUS[0]}" "sparse matrices in $type"
  done
fi
# Plans of searches, all run, on matrices of several patterns; and searches that leave something out.
if wanted sparse-mixed; then
  step "plans for mixed sparse matrices"
  "$bin/apl_sparse_gpu" --mixed --operators=spmm --widths=128 --plans --searched --no-peers --json="$out/sparse-mixed.json" \
    2>&1 | tee "$out/sparse-mixed.log"
  note "${PIPESTATUS[0]}" "plans for mixed sparse matrices"
  python3 bench/sparse_gpu/plans.py "$out/sparse-mixed.json"
  "$bin/apl_sparse_gpu" --studies --operators=spmm --widths=32 --no-peers --json="$out/sparse-studies.json" \
    --matrices=crossed,logsparse,strided,levels_32768_30,ppi_syn,ND_syn 2>&1 | tee "$out/sparse-studies.log"
  note "${PIPESTATUS[0]}" "studies of plans"
fi
if wanted sparse-programs; then
  for large in "" --large; do
    step "programs with sparse operands $large"
    "$bin/apl_sparse_tests" --backends="${APL_GPU_BACKEND:-cuda}" --count=100 $large 2>&1 | tee "$out/sparse-programs.log"
    note "${PIPESTATUS[0]}" "programs with sparse operands"
  done
fi
if wanted sparse-check && command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    step "sparse templates, compute-sanitizer --tool $tool"
    timeout 150 compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 5 --report-api-errors no \
      "$bin/apl_sparse_gpu" --once --no-peers --sweep --plans --widths=40 \
      --matrices=cora_syn,768x768_s95,blocks_768x768_40,halves_2048_12,longrows_4000_2 \
      >"$out/sparse-$tool.log" 2>&1
    note $? "$tool; see $out/sparse-$tool.log"
    grep -E "ERROR SUMMARY|RACECHECK SUMMARY|wrong" "$out/sparse-$tool.log" | tail -n 3
  done
fi

# Proxies of tiles are compiled and timed one by one: what ends in this time is there.
if wanted constant; then
  step "constant matrices"
  python3 bench/constant.py "$bin/aplc" --backend="${APL_GPU_BACKEND:-cuda}" --matrices=768x768_s98,768x768_s95 \
    --widths=128 --seconds=150 --log="$out/constant-logs" --json="$out/constant.json" 2>&1 | tee "$out/constant.log"
  note "${PIPESTATUS[0]}" "constant matrices"
fi

# The package for Python lies beside BIN, built for the python3 that has torch and jax (-DPython_EXECUTABLE).
if wanted engines; then
  step "operators of PyTorch and functions of JAX"
  PYTHONPATH=$bin/../python python3 bench/engines.py --json="$out/engines.json" 2>"$out/engines.log"
  note $? "engines; see $out/engines.log"
fi

if wanted kernel-files; then
  step "kernel files of the tour's entries, compiled by nvcc"
  timeout 200 python3 bench/kernel_files.py "$bin/aplc" --json="$out/kernel-files.json"
  note $? "kernel files"
fi

if wanted reductions; then
  step "reductions, scans and filters of whole arrays"
  timeout 240 python3 bench/reductions_gpu.py "$bin/aplc" --json="$out/reductions.json"
  note $? "reductions"
fi

wanted bench || exit $status
step "benchmark"
"$bin/apl_bench" --backend="$backend" ${APL_GPU_SMALL:+--small} --json="$out/apl.json" 2>&1 | tee "$out/bench.log"
note "${PIPESTATUS[0]}" "benchmark"

step "peers"
if wanted peers && python3 -c 'import torch' 2>/dev/null; then
  python3 bench/peers.py --json="$out/peers.json" >"$out/peers.log" 2>&1
  note $? "peers; see $out/peers.log"
fi
python3 bench/table.py "$out" || status=1

exit $status
