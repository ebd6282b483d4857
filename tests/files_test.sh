#!/usr/bin/env bash
# What aplc does with files, and where the user's files or the machine are at fault.
# Run as: files_test.sh APLC FOLDER, with FOLDER for what it makes.
set -u
aplc=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder/cache" "$folder/tmp" "$folder/bin"
cd "$folder" || exit 1
export XDG_CACHE_HOME=$folder/cache TMPDIR=$folder/tmp
failures=0

fail() {
  printf 'FAILED, lines %s: %s\n' "${BASH_LINENO[*]}" "$*"
  sed 's/^/  | /' err 2>/dev/null | head -5
  failures=$((failures + 1))
}
# expect CODE TEXT COMMAND...: the exit code, and what must be in standard error.
expect() {
  local code=$1 text=$2 got
  shift 2
  "$@" >out 2>err
  got=$?
  ((got == code)) || fail "$*: exit code $got, not $code"
  [[ -z $text ]] || grep -qF -- "$text" err || fail "$*: no \`$text\`"
}
same() { [[ $1 == "$2" ]] || fail "\`$1\`, not \`$2\`"; }
# Nothing is left of what was made for a while.
clean() {
  local left
  left=$(find . -name '.aplc-*'; find tmp -mindepth 1)
  [[ -z $left ]] || fail "left: $left"
}

cat >one.fut <<'END'
-- ==
-- input { [1, 2] } output { [2, 3] }
entry main (x: []i32) = map (+ 1) x
END
cat >mm.fut <<'END'
-- ==
-- entry: mm
-- "tiny" input { [[1f32, 2f32], [3f32, 4f32]] [[1f32, 2f32], [3f32, 4f32]] }
entry mm [n][m][p] (a: [n][m]f32) (b: [m][p]f32) = map (\x -> map (\y -> f32.sum (map2 (*) x y)) (transpose b)) a
END
cat >rows.fut <<'END'
#[sparse(A)]
entry main [n][m] (A: [n][m]f32) (x: [m]f32): [n]f32 = map (\row -> f32.sum (map2 (*) row x)) A
END
printf '%%%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 2\n2 3 4\n' >m.mtx
"$aplc" sparse search m.mtx -q --device cpu -o m.plan || fail "no plan"

## Standard output that is full or closed
words=("run one.fut [1]" "test -i one.fut" "bench -r 1 --no-convergence-phase one.fut"
  "tune --most=1 -r 1 mm.fut" "dataset -g [10]i32" "explain mm.fut" "c one.fut" "cuda one.fut" "opt one.fut" passes
  "sparse inspect m.mtx" "sparse search m.mtx" "sparse show m.plan m.mtx" --help
  --version "c --help")
for command in "${words[@]}"; do
  # shellcheck disable=SC2086
  "$aplc" $command >/dev/full 2>err
  same "$command: $?" "$command: 71"
  grep -q "cannot write standard output: No space left on device \[machine.io\]" err || fail "$command: no message"
  # shellcheck disable=SC2086
  "$aplc" $command >&- 2>err
  same "$command, closed: $?" "$command, closed: 71"
  grep -q "cannot write standard output: Bad file descriptor \[machine.io\]" err || fail "$command, closed: no message"
done
ln -s /dev/full full.smtx
expect 71 "cannot write full.smtx: No space left on device" "$aplc" sparse convert m.mtx full.smtx
# What is wrong with the program counts more than what it printed; messages have no reader, and change nothing.
"$aplc" run one.fut '[1f32]' >/dev/full 2>err
same $? 2
"$aplc" run one.fut '[1f32]' 2>/dev/full
same $? 2
"$aplc" run one.fut '[1f32]' 2>&-
same $? 2
expect 0 "" "$aplc" check one.fut

## Outputs
printf 'mine' >out.c.tmp
umask 027
expect 0 "" "$aplc" c one.fut -o out.c
same "$(cat out.c.tmp) $(stat -c %a out.c)" "mine 640"
umask 022
printf 'old' >out.c
chmod 606 out.c
expect 0 "" "$aplc" c one.fut -o out.c
same "$(stat -c %a out.c)" 606
grep -q apl_locations out.c || fail "out.c was not written"
mkdir elsewhere
printf 'old' >elsewhere/target.c
ln -s elsewhere/target.c link.c
expect 0 "" "$aplc" c one.fut -o link.c
same "$(readlink link.c)" elsewhere/target.c
cmp -s out.c elsewhere/target.c || fail "the link's target was not written"
ln -s elsewhere/new.c dangling.c
expect 0 "" "$aplc" c one.fut -o dangling.c
cmp -s out.c elsewhere/new.c || fail "what the link names was not made"
ln elsewhere/new.c hard.c
expect 0 "" "$aplc" opt one.fut -o hard.c
cmp -s hard.c elsewhere/new.c || fail "a hard link was cut off"
printf 'kept' >protected.c
chmod 444 protected.c
expect 64 "cannot write protected.c: Permission denied" "$aplc" c one.fut -o protected.c
same "$(cat protected.c)" kept
expect 64 "cannot write elsewhere: Is a directory" "$aplc" c one.fut -o elsewhere
expect 64 "cannot write nowhere/x.c: No such file or directory" "$aplc" c one.fut -o nowhere/x.c
expect 64 "cannot write elsewhere: Is a directory" "$aplc" test -i one.fut --json=elsewhere
expect 0 "" "$aplc" c one.fut -o /dev/null
mkfifo pipe
cat pipe >piped.c &
expect 0 "" "$aplc" c one.fut -o pipe
wait $!
cmp -s piped.c out.c || fail "a pipe was not written"
[[ -p pipe ]] || fail "a pipe was replaced"
clean

## Standard output by its name
for words in "c one.fut" "cuda one.fut" "hip one.fut" "cuda --emit=kernel one.fut" "opt one.fut" \
  "sparse search m.mtx -q --device cpu"; do
  # shellcheck disable=SC2086
  "$aplc" $words >plain.txt || fail "$words"
  # shellcheck disable=SC2086
  expect 0 "" "$aplc" $words -o -
  cmp -s plain.txt out || fail "$words -o -: another text"
done
# What is said besides goes to standard error.
expect 0 "hybrid, by the model" "$aplc" sparse search m.mtx --device cpu -o -
cmp -s plain.txt out || fail "a plan and more"
for command in "test -i" "bench -r 1 --no-convergence-phase"; do
  # shellcheck disable=SC2086
  expect 0 "" "$aplc" $command --json - one.fut
  [[ -s err ]] && python3 -c 'import json; json.load(open("out"))' 2>>err || fail "$command --json -: no JSON"
done
expect 0 "" "$aplc" report one.fut -o -
[[ $(head -c 15 out)$(tail -c 8 out) == "<!doctype html></html>" ]] || fail "report -o -: no page, or more"
expect 0 "runs of the command" "$aplc" reduce "grep -q entry" one.fut -o -
grep -q entry out || fail "reduce -o -"
for form in library executable server; do
  expect 0 "" "$aplc" c --$form one.fut -o -
  ${CC:-cc} -std=gnu11 -O1 -fopenmp -c -x c out -o whole.o 2>err || fail "c --$form -o -: does not compile alone: $(cat err)"
done
${CC:-cc} whole.o -fopenmp -lm -o whole 2>err || fail "c --server -o -: no program: $(cat err)"
rm -f whole whole.o
expect 0 "" "$aplc" c one.fut
grep -q -e '--executable -o -' out || fail "c: its text does not say what makes a whole program"
"$aplc" c one.fut -o - >/dev/full 2>err
same "$? $(grep -c 'cannot write standard output' err)" "71 1"
[[ ! -e - ]] || fail "a file named -"
expect 0 "" "$aplc" c one.fut -o ./-
[[ -s ./- ]] || fail "no file named -"
rm -f ./-
clean

## Outputs that are inputs
cp one.fut source
cp m.mtx m2.mtx
printf 'mm.T_n=8\n' >numbers
ln -s one.fut alias.fut
ln -s one.fut alias.fut.c
before=$(cat source one.fut m2.mtx numbers | md5sum)
expect 64 "cannot write source: it is also read by this command" "$aplc" c source --executable
expect 64 "cannot write source: it is also read by this command" "$aplc" c source --server
expect 64 "cannot write alias.fut.c: it is also read" "$aplc" c one.fut --library -o alias.fut
expect 64 "cannot write one.fut: it is also read" "$aplc" c alias.fut -o one.fut
expect 64 "cannot write alias.fut: it is also read" "$aplc" opt one.fut -o alias.fut
expect 64 "cannot write numbers: it is also read" "$aplc" c mm.fut --tuning=numbers -o numbers
expect 64 "cannot write one.fut: it is also read" "$aplc" test -i one.fut --json=one.fut
expect 64 "cannot write one.fut: it is also read" "$aplc" bench one.fut --json=one.fut
expect 64 "cannot write m2.mtx: it is also read" "$aplc" sparse convert m2.mtx m2.mtx
expect 64 "cannot write m2.mtx: it is also read" "$aplc" sparse inspect m2.mtx --svg m2.mtx
expect 64 "cannot write m2.mtx: it is also read" "$aplc" sparse search m2.mtx -o m2.mtx
same "$(cat source one.fut m2.mtx numbers | md5sum)" "$before"
[[ ! -e source.c ]] || fail "half a program was made"
expect 0 "" "$aplc" c one.fut --executable -o made
same "$(echo '[1, 2]' | ./made)" "[2i32, 3i32]"

## Inputs that are none
for command in "check elsewhere" "run one.fut @elsewhere" "c one.fut --tuning=elsewhere" "c one.fut --device=./elsewhere" \
  "run rows.fut A=@elsewhere x=[1,2,3]" "run rows.fut --plan=A=elsewhere A=@m.mtx x=[1,2,3]" \
  "sparse inspect elsewhere" "sparse show elsewhere" "explain rows.fut A=@elsewhere"; do
  # shellcheck disable=SC2086
  expect 64 ": Is a directory" "$aplc" $command
done
expect 64 "cannot read standard input: Is a directory" bash -c "'$aplc' run one.fut <elsewhere"
expect 64 "cannot read standard input: Is a directory" bash -c "'$aplc' dataset <elsewhere"
for command in "check /dev/zero" "run one.fut @/dev/zero" "sparse inspect /dev/zero" "c one.fut --tuning=/dev/zero"; do
  # shellcheck disable=SC2086
  expect 64 "cannot read /dev/zero: a device that gives more than 64 MiB" "$aplc" $command
done
mkdir one.fut.tuning
"$aplc" test -i one.fut >out 2>err
same $? 1
grep -q "cannot read one.fut.tuning: Is a directory" out || fail "a folder of tuning parameters was read"
rmdir one.fut.tuning

## More than the machine has
expect 71 "bytes for [1000000000000]i64: Cannot allocate memory [machine.resources]" "$aplc" dataset -g '[1000000000000]i64'

## Compilers
ln -s "$(command -v sleep)" "$(command -v cat)" bin
expect 3 "cannot run the compiler \`cc\`: No such file or directory [unsupported.backend]" \
  env PATH="$folder/bin" "$aplc" run --no-cache one.fut '[1]'
fake() { printf '#!/bin/sh\n%s\n' "$1" >bin/cc; chmod +x bin/cc; }
fake 'echo cc1 is missing; exit 1'
expect 3 "cc1 is missing" env PATH="$folder/bin" "$aplc" run --no-cache one.fut '[1]'
expect 3 "cc1 is missing" env PATH="$folder/bin" "$aplc" c one.fut --executable -o unmade
[[ ! -e unmade ]] || fail "a program was made without a compiler"
fake 'echo "as: cannot write: No space left on device"; exit 1'
expect 71 "No space left on device" env PATH="$folder/bin" "$aplc" run --no-cache one.fut '[1]'
fake 'kill -9 $$'
expect 71 "was ended: Killed" env PATH="$folder/bin" "$aplc" run --no-cache one.fut '[1]'
clean

## Open files
refused=0
for most in 4 5 6 7 8 10 12 16; do
  (ulimit -n "$most" && exec "$aplc" run --no-cache one.fut '[1]') >out 2>err
  code=$?
  # The loader of programs needs some, too.
  [[ $code == 71 ]] && grep -q "Too many open files" err && refused=1
  [[ $code == 0 || $code == 71 || ($code == 127 && $(<err) == *"shared libraries"*) ]] || fail "$most files: exit code $code"
done
((refused)) || fail "the limits are no limits"
clean

## Temporary folders, and what is left in them by those who are interrupted
expect 64 "cannot make a temporary folder in $folder/nowhere: No such file or directory" \
  env TMPDIR="$folder/nowhere" "$aplc" run --no-cache one.fut '[1]'
# shellcheck disable=SC2016
fake 'touch started; exec sleep 60'
for signal in INT TERM HUP; do
  rm -f started
  env --default-signal=INT PATH="$folder/bin:$PATH" "$aplc" run --no-cache one.fut '[1]' >out 2>err &
  command=$!
  for ((k = 0; k < 300; ++k)); do [[ -e started ]] && break || sleep 0.1; done
  [[ -n $(find tmp -mindepth 1 -name program.c) ]] || fail "TMPDIR is not where it compiles"
  compiler=$(pgrep -P $command)
  kill -s $signal $command
  wait $command 2>/dev/null
  same "$signal: $?" "$signal: $((128 + $(kill -l $signal)))"
  kill "$compiler" 2>/dev/null
  clean
done
rm -f bin/cc

## Compiled objects that have changed on disk
expect 0 "" "$aplc" run one.fut '[41]'
object=$(find cache -type f -size +4k | head -1)
[[ -n $object ]] || fail "no object is kept"
find cache -type f | while read -r file; do
  size=$(stat -c %s "$file")
  for at in 3 2; do head -c 64 /dev/urandom | dd of="$file" bs=1 seek=$((size / at)) conv=notrunc status=none; done
done
expect 0 "" "$aplc" run one.fut '[41]'
same "$(cat out)" "[42i32]"
expect 0 "" "$aplc" run one.fut '[41]'
same "$(cat out)" "[42i32]"

## Packed matrices
gzip -k m.mtx
expect 0 "" "$aplc" run rows.fut A=@m.mtx.gz 'x=[1,1,1]'
same "$(cat out)" "[2.0f32, 4.0f32]"
"$aplc" sparse inspect m.mtx >plain
for command in inspect search; do
  expect 0 "" "$aplc" sparse $command m.mtx.gz
done
expect 0 "" "$aplc" sparse inspect m.mtx.gz
cmp -s plain out || fail "a packed matrix is another one"
expect 0 "" "$aplc" sparse show m.plan m.mtx.gz
expect 0 "" "$aplc" sparse convert m.mtx.gz back.smtx
expect 0 "" "$aplc" explain rows.fut A=@m.mtx.gz
head -c 40 m.mtx.gz >half.mtx.gz
expect 2 "half.mtx.gz: damaged gzip data" "$aplc" sparse inspect half.mtx.gz

## Tuning parameters
printf '\r\n  mm.T_n = 8 \r\nmm.R_n=1\r\n\t\n' >numbers
expect 0 "" "$aplc" c mm.fut --tuning=numbers -o tuned.c
expect 0 "" "$aplc" c mm.fut --param=mm.T_n=8 --param=mm.R_n=1 -o param.c
cmp -s tuned.c param.c || fail "blanks in a tuning file have a meaning"
printf 'mm.T_n=8\n\nmm.R_n\n' >wrong
expect 64 "wrong:3:1: error: tuning file: expected NAME=VALUE with a whole number, found \`mm.R_n\`" \
  "$aplc" c mm.fut --tuning=wrong
text="mm.T_n=1000000000: a tile number is 1048576 at most [command.bad-parameter]"
for command in "run --backend=c" "run --backend=interp" "run --backend=emulate" c cuda "c --library" opt "opt -p memory" explain; do
  # shellcheck disable=SC2086
  expect 64 "$text" "$aplc" $command mm.fut --param=mm.T_n=1000000000
done
printf 'mm.T_n=1000000000\n' >mm.fut.tuning
for command in "test -i" test bench; do
  # shellcheck disable=SC2086
  "$aplc" $command mm.fut >out 2>err
  same "$command: $?" "$command: 1"
  grep -qF "$text" out || fail "$command: no \`$text\`"
done
expect 64 "$text" "$aplc" tune mm.fut
rm mm.fut.tuning
# Names that the program does not have, with the nearest that it has.
printf 'mm.T_n=8\nmm.R_nn=1\n' >unknown
for command in "run --backend=interp" "run --backend=c" c cuda explain; do
  values=$([[ $command == run* ]] && printf '%s ' '[[1f32]]' '[[1f32]]')
  # shellcheck disable=SC2086
  expect 64 "--param mm.T_nn: the program has no tuning parameter of this name" "$aplc" $command mm.fut --param=mm.T_nn=8 $values
  grep -qF "did you mean 'mm.T_n'?" err || fail "$command: no similar name"
  # shellcheck disable=SC2086
  expect 64 "unknown:2:1: error: the program has no tuning parameter \`mm.R_nn\`" "$aplc" $command mm.fut --tuning=unknown $values
  # Those of another machine are known.
  # shellcheck disable=SC2086
  expect 0 "" "$aplc" $command mm.fut --param=mm.stages=2 --param=mm.plan2.T_n=8 $values
done
cp unknown mm.fut.tuning
"$aplc" test mm.fut >out 2>err
grep -qF "mm.fut.tuning:2:1: warning: the program has no tuning parameter" err || fail "test: no warning of an unknown name"
rm mm.fut.tuning
expect 64 "--size nn=8: the program has no size of this name" "$aplc" explain mm.fut --size nn=8
expect 64 "--size nn=8: the program has no size of this name" "$aplc" cuda --emit kernel mm.fut --size nn=8
# Less than that may still be too much for a device: all that choose a plan for it say so.
for command in "run --backend=emulate" cuda explain; do
  # shellcheck disable=SC2086
  expect 64 "the tile numbers that are given cannot work: " "$aplc" $command mm.fut --param=mm.T_n=100000 \
    --param=mm.R_n=1 $([[ $command == run* ]] && printf '%s ' '[[1f32]]' '[[1f32]]')
done

## Times
start=$SECONDS
expect 0 "" "$aplc" bench --convergence-max-seconds=1 one.fut
((SECONDS - start < 30)) || fail "bench took $((SECONDS - start)) s"
if command -v script >/dev/null; then
  TERM=dumb script -qec "'$aplc' bench --convergence-max-seconds=1 one.fut" terminal >/dev/null
  grep -q "one.fut #0.*runs, .* s of 1 s at most" terminal || fail "bench says nothing while it runs"
fi
# One thread: many that share few processors wait for each other. A loaded machine may take long over a short call, so
# that it is tried some times.
sed 's/"tiny" input .*/"tiny" input { [[1f32]] [[2f32]] }/' mm.fut >tiny.fut
for ((attempt = 0; attempt < 5; ++attempt)); do
  expect 0 "" env OMP_NUM_THREADS=1 "$aplc" tune --most=1 -r 5 tiny.fut
  if grep -q "timer's resolution" out; then break; fi
  rm -f tiny.fut.tuning tiny.fut.tuning-log
done
((attempt < 5)) || fail "tune does not say that times are too short"
# A kernel that is compiled when it is called, by a slow compiler.
printf '#!/bin/sh\nsleep 4\nexec %s "$@"\n' "$(command -v c++)" >bin/c++
chmod +x bin/c++
# What the compiler takes is no time of the program's.
expect 0 "" env PATH="$folder/bin:$PATH" "$aplc" test --no-cache --timeout=3 one.fut
"$aplc" dataset -b -g '[100][100]f32' >square
for backend in c emulate; do
  expect 0 "mm: " env PATH="$folder/bin:$PATH" "$aplc" run --no-cache --backend=$backend --time mm.fut @square @square
  time=$(sed -E 's/^mm: ([0-9]+).*/\1/' err)
  ((time < 4000000)) || fail "$backend: the time of compiling is in $time us"
done
rm bin/c++
"$aplc" run --backend=interp --time one.fut '[1]' >out 2>err
grep -qE '^main: [0-9.]+ us$' err || fail "the interpreter's call has no time"
clean

((failures == 0)) || { echo "$failures failures"; exit 1; }
