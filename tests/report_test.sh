#!/usr/bin/env bash
# The page of `aplc report`: what is in it, and how a browser takes it, in light and dark.
# usage: report_test.sh APLC SOURCE_TREE FOLDER; 77 where there is no Chromium, after all that needs none.
set -u
aplc=$1 tree=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder" || exit 1
failed=0
fail() { printf 'FAILED: %s\n' "$*"; failed=1; }

cat > sparse.fut <<'TEXT'
#[sparse(A)]
entry product [n][m][b] (A: [n][m]f16) (B: [m][b]f16) : [n][b]f16 =
  map (\row -> map (\col -> f16.sum (map2 (*) row col)) (transpose B)) A
TEXT
# Full blocks of 16 by 16 on the diagonal, and a column.
{
  echo '%%MatrixMarket matrix coordinate pattern general'
  echo '64 64 1072'
  for ((i = 1; i <= 64; ++i)); do
    for ((j = (i - 1) / 16 * 16 + 1; j <= (i - 1) / 16 * 16 + 16; ++j)); do echo "$i $j"; done
    ((i <= 48)) && echo "$i 60"
  done
} > A.mtx
"$aplc" sparse search A.mtx -o A.plan --dense 64 --for sparse.fut > out.txt || fail "a plan for the matrix"
printf '%s\n' '-- Nothing that is tiled </script> & "quoted".' 'entry f [n] (xs: [n]f32) : f32 = f32.sum xs' > plain.fut
printf '%s\n' '{"key": "k", "parameters": "main.T_m=16", "times": {"a": 12.5}}' \
  '{"key": "k", "parameters": "main.T_m=8", "times": {}, "error": "no"}' \
  '{"key": "k", "parameters": "main.T_m=32", "times": {"a": 9.5}}' > tune.log

"$aplc" report "$tree/tests/explain/product.fut" --device=h200 --size m=1024 --size n=1024 --size q=1024 \
  --log=tune.log -o contraction.html > out.txt || fail "a contraction"
[ "$(cat out.txt)" = contraction.html ] || fail "the page's path is not told: $(cat out.txt)"
"$aplc" report sparse.fut A=@A.mtx --size b=64 --device=h200 > out.txt || fail "a sparse program"
[ "$(cat out.txt)" = sparse.html ] || fail "the default name: $(cat out.txt)"
"$aplc" report sparse.fut A=@A.mtx --plan A=A.plan --size b=64 --device=h200 -o planned.html > out.txt ||
  fail "a sparse program with a plan"
"$aplc" report "$tree/examples/tour/attention.fut" --device=h200 -o dataset.html > out.txt || fail "a matrix of the first dataset"
"$aplc" report "$tree/examples/tour/layers.fut" --device=h200 --size a=784 --size b=512 --size batch=1000 --size c=10 \
  -o split.html > out.txt || fail "a contraction in parts"
"$aplc" report plain.fut --size n=100000 -o plain.html > out.txt || fail "a program where nothing fires"
"$aplc" report "$tree/examples/tour/histogram.fut" -o tour.html > out.txt || fail "a program of several entries"
"$aplc" report --log=none.log plain.fut > out.txt 2> err.txt
[ $? -eq 64 ] && grep -q 'none.log' err.txt || fail "a log that is not there"

want() { grep -q -e "$2" "$1" || fail "$1: no '$2'"; }
for page in contraction sparse plain tour; do
  want $page.html '<h2 id=source>Source'
  want $page.html 'Generated code'
  want $page.html 'Most would help: '
  # One file: nothing is loaded.
  grep -qE '(src|href)="?(https?:|//)' $page.html && fail "$page.html loads something"
  [ "$(grep -c '<svg' $page.html)" -le "$(grep -c '<title>' $page.html)" ] || fail "$page.html: a picture without title"
done
want contraction.html 'tiles of mq,qn-&gt;mn'
want contraction.html 'mq,qn-&gt;mn.*tiled [0-9]* x [0-9]* x [0-9]*'
want contraction.html 'class=added'
want contraction.html 'main.T_m=32'
want contraction.html 'APL_KERNEL'
# Its dims, and what lies in shared memory: two operands with the stages of their copies, tables, results.
want contraction.html '<th scope=row>m<td>M<td class=number>1024<td class=number>[0-9]*<td class=number>[0-9]*<td class=number>[0-9]*'
want contraction.html '>A: [0-9.]* KiB, 3 stages of [0-9.]* KiB<'
want contraction.html '>tables of row offsets: '
want contraction.html '>results before they are written: '
want contraction.html 'at a time in the 228 KiB of a multiprocessor'
want split.html '<th scope=row>part<td>batch<td class=number>[0-9][0-9]*<'
want split.html '<th scope=row>batch<td>M<td class=number>1000<'
want sparse.html '<h2 id=sparse>Sparse operands'
want sparse.html 'SpMM over the non-zeros of `A`'
want sparse.html 'path class="tiles" fill="none" stroke'
want sparse.html 'with the tiles of a plan that a short search finds'
want sparse.html '<th scope=row>dense<td class=number>[0-9.]* us'
want planned.html 'with the tiles of the plan that was given'
want planned.html '<th scope=row>dense<td class=number>[0-9.]* us'
want dataset.html 'The pattern of the first dataset, with the tiles'
want tour.html 'No contraction of this program is tiled'
want plain.html 'No contraction of this program is tiled'
want plain.html 'Nothing that is tiled &lt;/script&gt; &amp; &quot;quoted&quot;'
[ $failed -eq 0 ] || exit 1

# With a browser: charts are drawn, and its console has no errors.
browser=
for name in chromium chromium-browser google-chrome; do
  browser=$(command -v $name) && break
done
[ -n "$browser" ] || { echo "skipped: the browser's part, as there is no Chromium"; exit 77; }
grep -q 'id=data' contraction.html || { echo "skipped: the browser's part, as apl was built without chart.js"; exit 77; }
for page in contraction sparse planned plain tour; do
  for scheme in 1 0; do  # light, dark
    timeout -k 5 60 "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
      --disable-background-networking --user-data-dir="$folder/profile" \
      --enable-logging=stderr --blink-settings=preferredColorScheme=$scheme --virtual-time-budget=4000 \
      --dump-dom "file://$folder/$page.html" > dom.html 2> console.txt || fail "$page: the browser fails"
    grep -E 'CONSOLE' console.txt | grep -iE 'error|uncaught|refused' && fail "$page: errors on the console, scheme $scheme"
    charts=$(sed -n 's/.*<html[^>]*data-ready="\([0-9]*\)".*/\1/p' dom.html | head -1)
    canvases=$(grep -o '<canvas' dom.html | wc -l)
    [ "${charts:-0}" -gt 0 ] && [ "$charts" = "$canvases" ] || fail "$page: $canvases charts, of which ${charts:-0} are drawn"
    # Everything that opens or leads somewhere is reached by keys, in the order of the page.
    grep -qE 'tabindex="?[1-9]' dom.html && fail "$page: an order of its own for the keyboard"
    grep -qE '<canvas[^>]*aria-label=' dom.html || fail "$page: a chart that says nothing"
  done
done
exit $failed
