#!/usr/bin/env bash
# `./dev demo` at small sizes: what it prints, in 40 lines at most, and the pages that it writes.
# usage: demo_test.sh APLC SOURCE_TREE FOLDER
set -u
aplc=$1 tree=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder" || exit 1
failed=0
fail() { printf 'FAILED: %s\n' "$*"; failed=1; }

"$tree/examples/demo/run.sh" "$aplc" out small > shown.txt 2> errors.txt || { cat shown.txt errors.txt; exit 1; }
[ -s errors.txt ] && fail "it says $(cat errors.txt)"
[ "$(wc -l < shown.txt)" -le 40 ] || fail "$(wc -l < shown.txt) lines"
want() { [ "$(grep -cE -e "$2" shown.txt)" -ge "$1" ] || fail "not $1 times '$2'"; }
want 1 'icaq,qbjk->abcijk +packed'
want 1 'SpMM +over the non-zeros of `A`, by the runtime.s kernel'
want 2 '^most would help: '
want 1 '^  plain C, the loops of the source +[0-9.]+ ms +1.0x$'
want 1 '^  plain C, the sum moved outwards for vector code +[0-9.]+ ms +[0-9.]+x$'
# The sparse product is compared with loops over the non-zeros, never with loops over all elements.
want 1 '^  plain C, a loop over the non-zeros +[0-9.]+ ms +1.0x$'
want 2 '^  aplc, [0-9]+ threads? +[0-9.]+ ms +[0-9.]+x$'
for page in contraction spmm; do
  want 1 "^  out/$page.html\$"
  grep -q '</html>' "out/$page.html" || fail "no page out/$page.html"
done
# A size that there is not.
"$tree/examples/demo/run.sh" "$aplc" out tiny > /dev/null 2>&1
[ $? -eq 64 ] || fail "another word than small is taken"
[ $failed -eq 0 ] || cat shown.txt
exit $failed
