#!/usr/bin/env bash
# GPU tests and benchmark on this machine's NVIDIA GPU, beside cuBLAS and torch.einsum in the same run.
#   bench/gpu.sh [BIN [OUT [STEPS]]]
#     BIN: folder with apl_program_tests, apl_unit_tests, apl_contraction_tests, apl_bench (default: build/release/bin)
#     OUT: folder for logs and JSON (default: bench/results)
#     STEPS: names of steps with commas between, as `wanted` asks for them below (default: all)
#   APL_GPU_BACKEND=emulate APL_GPU_SMALL=1 tries contractions, plans, huge, ablation and variants out without a GPU.
# Exit status 0 only if every test and every check passed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${1:-build/release/bin}
out=${2:-bench/results}
steps=${3:-all}
mkdir -p "$out"
status=0
wanted() { [[ $steps == all || ,$steps, == *,$1,* ]]; }
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

# Errors and times of all types beside torch; then each form under the sanitizer, on a small program.
if wanted matrix-units; then
  step "products by matrix units"
  timeout 300 python3 bench/matrix_units.py "$bin/aplc" --json="$out/matrix-units.json" 2>&1 | tee "$out/matrix-units.log"
  note "${PIPESTATUS[0]}" "products by matrix units"
  timeout 100 "$bin/aplc" test --backend="$backend" tests/programs/matrix_units.fut >"$out/matrix-units-programs.log" 2>&1
  note $? "programs of matrix units; see $out/matrix-units-programs.log"
  tail -n 3 "$out/matrix-units-programs.log"
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      for entry in wide_nn bytes_nn bytes_tn three_nn one_nt; do
        log=$out/matrix-units-$entry-$tool.log
        timeout 60 compute-sanitizer --tool "$tool" --target-processes all --error-exitcode 9 --print-limit 5 \
          --report-api-errors no "$bin/aplc" test --backend=cuda --entry-point "$entry" tests/programs/matrix_units.fut >"$log" 2>&1
        note $? "$entry, $tool; see $log"
        grep -hE "ERROR SUMMARY|RACECHECK SUMMARY" "$log" | sort | uniq -c | sed "s/^/$entry $tool /"
      done
    done
  fi
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
# Matrices of all kinds beside all formats and algorithms of cuSPARSE that are exact, plans that the models choose, and
# dense products. Each of these steps has a limit of its own; what was measured before it is there.
sparse_kinds=cora_syn,pubmed_syn,ppi_syn,arxiv_syn,ND_syn,communities_20000_40,longrows_20000_8
sparse_kinds+=,768x768_s50,768x768_s90,768x768_s95,3072x768_s90,3072x768_s95,768x3072_s90,move_768x768_s99
sparse_kinds+=,semi_768x768,semi_3072x768,blocks_768x768_121,blocks_768x768_40,blocks_3072x768_492
sparse_kinds+=,blocks_768x3072_492,logsparse,strided,crossed,window_4096_64,banded_65536_16,arrow_20000_8
sparse_kinds+=,halves_16384_24,levels_32768_30,bandrows_16384_8
# NAME SECONDS ARGUMENT...: measures, and puts date and device round what came.
sparse_step() {
  local name=$1 seconds=$2 result
  shift 2
  timeout "$seconds" "$bin/apl_sparse_gpu" --json="$out/$name.json" "$@" >"$out/$name.log" 2>&1
  result=$?
  [ $result = 124 ] && echo "$name: not all within $seconds s" && result=0
  note $result "$name; see $out/$name.log"
  grep -E "WRONG|spills|cases, .* wrong" "$out/$name.log" | head -n 20
  python3 bench/sparse_gpu/dated.py "$out/$name.json" "$out" "$name"
}
for type in f16 f32; do
  wanted sparse-$type || continue
  step "sparse matrices of all kinds in $type"
  if [ $type = f16 ]; then
    sparse_step sparse-kinds-f16 110 --widths=32,128 --searched --formats --dense --matrices=$sparse_kinds
  else
    sparse_step sparse-kinds-f32 70 --type=f32 --operators=spmm --widths=128 --searched --formats --dense \
      --matrices=$sparse_kinds
  fi
  python3 bench/sparse_gpu/classes.py "$out/sparse-kinds-$type.json"
done
# APL_SPARSE_MIXED=--matrices=A,B: those instead of all 24. Plans of searches, all run, on matrices of several patterns; and searches that leave something out.
if wanted sparse-mixed; then
  step "plans for 24 mixed sparse matrices"
  sparse_step sparse-mixed 100 ${APL_SPARSE_MIXED:---mixed} --operators=spmm --widths=128 --plans --searched --no-peers
  python3 bench/sparse_gpu/plans.py --cases "$out/sparse-mixed.json"
  step "tables 6 and 7 and figure 12 by running"
  sparse_step sparse-studies 40 --studies --operators=spmm --widths=32 --no-peers \
    --matrices=crossed,logsparse,strided,ppi_syn,ND_syn,arxiv_syn
  python3 bench/sparse_gpu/studies.py "$out/sparse-studies.json"
fi
# What runs where a plan says `form dense`, and who multiplies two of each four elements.
if wanted sparse-dense; then
  step "dense products by plans"
  timeout 60 python3 bench/sparse_gpu/dense_plans.py "$bin/aplc" --json="$out/sparse-dense.json"
  note $? "dense products by plans"
  python3 bench/sparse_gpu/dated.py "$out/sparse-dense.json" "$out" sparse-dense
  if command -v compute-sanitizer >/dev/null; then
    timeout 70 python3 bench/sparse_gpu/dense_plans.py "$bin/aplc" --rows=96 --width=32 --sanitize
    note $? "dense products under compute-sanitizer"
  fi
  timeout 45 python3 bench/sparse_gpu/semi.py 768x768:32 768x768:128 3072x768:32 3072x768:128
  note $? "cuSPARSELt"
fi
# Counters of what is furthest behind its peers: the gathers of a large graph, sampled products, mixed matrices.
if wanted sparse-profile; then
  step "sparse products by Nsight Compute"
  profiled=0
  for what in "--type=f32 --operators=spmm --formats --matrices=ND_syn" \
              "--operators=sddmm --sweep --matrices=768x3072_s90,logsparse" \
              "--operators=spmm --plans --no-peers --matrices=levels_65536_10,bandrows_65536_16"; do
    profiled=$((profiled + 1))
    # shellcheck disable=SC2086
    timeout 60 python3 bench/sparse_gpu/profile.py --json="$out/sparse-profile-$profiled.json" \
      "$bin/apl_sparse_gpu" --widths=128 $what 2>&1 | tee -a "$out/sparse-profile.log"
    note "${PIPESTATUS[0]}" "profile of $what"
  done
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

if wanted contractions-table; then
  step "contractions beside torch.einsum, and beside the model"
  timeout 400 python3 bench/contractions_gpu.py "$bin/aplc" --json="$out/contractions-table.json" 2>&1 |
    tee "$out/contractions-table.log"
  note "${PIPESTATUS[0]}" "contractions beside torch.einsum"
fi

if wanted array-programs; then
  step "array programs beside torch, JAX, CUB and plain CUDA"
  timeout 280 python3 bench/programs_gpu.py "$bin/aplc" --jax --json="$out/programs.json" 2>&1 | tee "$out/array-programs.log"
  note "${PIPESTATUS[0]}" "array programs"
fi

if wanted thresholds; then
  step "versions that thresholds choose between"
  timeout 90 python3 bench/thresholds_gpu.py "$bin/aplc" --json="$out/thresholds.json"
  note $? "thresholds"
fi

# Programs that are not in this repository: APL_FUTHARK_BENCHMARKS is a tree of Futhark's benchmarks.
if wanted futhark-benchmarks && [ -n "${APL_FUTHARK_BENCHMARKS:-}" ]; then
  step "Futhark's benchmark programs: their data sets, then random ones"
  for random in 0 2; do
    timeout 240 python3 tests/futhark_benchmarks.py "$APL_FUTHARK_BENCHMARKS" --aplc "$(realpath "$bin/aplc")" --backend cuda \
      --reference interp-or-c --timeout 20 --reference-timeout 10 --jobs "$(nproc)" --random $random \
      --json="$out/futhark-benchmarks-$random.json" >"$out/futhark-benchmarks-$random.log" 2>&1
    note $? "Futhark's benchmarks; see $out/futhark-benchmarks-$random.log"
    grep -E "^    |^[0-9]+ (programs|of those)" "$out/futhark-benchmarks-$random.log" | tail -n 25
  done
fi

# Operands under conditions, rows that an array of indices names, and what no step changes.
if wanted reads; then
  step "conditional and gathered reads against the interpreter, and beside torch"
  "$bin/apl_program_tests" --backends="${APL_GPU_BACKEND:-cuda}" tests/programs/conditional_reads.fut >"$out/reads-programs.log" 2>&1
  note $? "reads; see $out/reads-programs.log"
  tail -n 2 "$out/reads-programs.log"
  timeout 240 python3 bench/reads.py "$bin/aplc" --backend="${APL_GPU_BACKEND:-cuda}" ${APL_GPU_SMALL:+--small} \
    --json="$out/reads.json" 2>&1 | tee "$out/reads.log"
  note "${PIPESTATUS[0]}" "reads"
fi

# Beside PyTorch; then the smallest sizes under the sanitizer.
if wanted attention; then
  step "attention, written in five ways"
  timeout 110 python3 bench/attention.py "$bin/aplc" --json="$out/attention.json" 2>&1 | tee "$out/attention.log"
  note "${PIPESTATUS[0]}" "attention"
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      timeout 60 compute-sanitizer --target-processes all --report-api-errors no --tool "$tool" --error-exitcode 9 --print-limit 5 \
        "$bin/aplc" test --backend=cuda tests/programs/blocks/{attention_queries,pairs}.fut >"$out/attention-$tool.log" 2>&1
      note $? "attention and pairs under $tool; see $out/attention-$tool.log"
      grep -E "ERROR SUMMARY|RACECHECK SUMMARY" "$out/attention-$tool.log" | tail -n 2
    done
  fi
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
