#!/usr/bin/env bash
# What `aplc explain` says of two programs, and their times beside plain C loops, compiled by the same compiler with the
# same options. usage: run.sh APLC FOLDER [small]; FOLDER gets libraries, programs and the reports.
set -euo pipefail
aplc=$(realpath "$1")
size=${3:-large}
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
flags=(-O3 -march=native -fopenmp)

case $size in
  large) n=12 sum=512 columns=1024 ;;
  small) n=4 sum=32 columns=16 ;;
  *) echo "usage: run.sh APLC FOLDER [small]" >&2; exit 64 ;;
esac
contraction=(contraction.fut)
for dim in a b c i j k; do contraction+=(--size "$dim=$n"); done
contraction+=(--size "q=$sum")
spmm=(spmm.fut A=@cora.mtx.gz --size "b=$columns")

show() {  # PROGRAM
  grep -v '^--' "$1.fut"
  echo
}
measure() {  # PROGRAM [ARGUMENT ...]
  local program=$1
  shift
  "$aplc" c --library -o "$folder/$program" "$program.fut"
  "${CC:-cc}" "${flags[@]}" -I"$folder" -I. -o "$folder/$program" "$program.c" "$folder/$program.c" -lm
  printf '  %-52s %12s\n' "${CC:-cc} ${flags[*]}" time
  "$folder/$program" "$@"
}

echo "== a contraction of rank 6 (examples/demo/contraction.fut)"
show contraction
"$aplc" explain "${contraction[@]}"
measure contraction "$n" "$sum"
echo "== a sparse product: the citations between 2,708 papers (examples/demo/spmm.fut, cora.mtx.gz)"
show spmm
"$aplc" explain "${spmm[@]}"
gunzip -c cora.mtx.gz >"$folder/cora.mtx"
measure spmm "$folder/cora.mtx" "$columns"
echo "== pages about both, for a browser"
# Of a GPU, whose plans have more to look at; a path of the caller's folder.
"$aplc" report "${contraction[@]}" --device=h200 -o "$folder/contraction.html" >/dev/null
"$aplc" report "${spmm[@]}" -o "$folder/spmm.html" >/dev/null
for page in contraction spmm; do echo "  $2/$page.html"; done
