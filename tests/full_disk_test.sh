#!/usr/bin/env bash
# What aplc does on a disk that is full: a small one in memory, which only this test sees.
# Run as: full_disk_test.sh APLC FOLDER; exit code 77 where such a disk cannot be made.
set -u
aplc=$1 folder=$2
if [[ ${3:-} != mounted ]]; then
  unshare -m true 2>/dev/null || { echo "skipped: no right to mount a file system (not root)"; exit 77; }
  exec unshare -m --propagation private bash "$0" "$aplc" "$folder" mounted
fi
rm -rf "$folder"
mkdir -p "$folder/disk" "$folder/cache" "$folder/tmp"
cd "$folder" || exit 1
mount -t tmpfs -o size=256k none disk || { echo "skipped: no right to mount a file system"; exit 77; }
export XDG_CACHE_HOME=$folder/cache TMPDIR=$folder/tmp
failures=0

fail() {
  printf 'FAILED, line %s: %s\n' "${BASH_LINENO[1]}" "$*"
  sed 's/^/  | /' err 2>/dev/null | head -5
  failures=$((failures + 1))
}
full() {
  "$@" >out 2>err
  local got=$?
  ((got == 71)) || fail "$*: exit code $got, not 71"
  grep -q "No space left on device" err || fail "$*: no message"
}

cat >one.fut <<'END'
-- ==
-- input { [1, 2] } output { [2, 3] }
entry main (x: []i32) = map (+ 1) x
END
printf '%%%%MatrixMarket matrix coordinate real general\n2 3 2\n1 1 2\n2 3 4\n' >m.mtx
printf 'what was there' >disk/out
head -c 1M /dev/zero >disk/filler 2>/dev/null

full "$aplc" c one.fut -o disk/out
full "$aplc" cuda one.fut -o disk/out
full "$aplc" opt one.fut -o disk/out
full "$aplc" c one.fut --library -o disk/new
full "$aplc" c one.fut --executable -o disk/new
full "$aplc" test -i one.fut --json=disk/out
full "$aplc" bench -r 1 --no-convergence-phase one.fut --json=disk/out
full "$aplc" sparse inspect m.mtx --svg disk/out
full "$aplc" sparse search m.mtx --device cpu -o disk/out
full "$aplc" sparse convert m.mtx disk/new.smtx
[[ $(<disk/out) == "what was there" ]] || fail "what was there is gone"
[[ $(ls -A disk) == $'filler\nout' ]] || fail "left: $(ls -A disk)"
"$aplc" dataset -g '[100000]i32' >disk/out 2>err
[[ $? == 71 ]] || fail "dataset into a full disk is no error"

# Temporary files: no room for the text; none for what the compiler makes of it.
full env TMPDIR="$folder/disk" "$aplc" run --no-cache one.fut '[1]'
rm disk/filler
head -c $((256 * 1024 - 70000)) /dev/zero >disk/filler 2>/dev/null
full env TMPDIR="$folder/disk" "$aplc" run --no-cache one.fut '[1]'
[[ $(ls -A disk) == $'filler\nout' ]] || fail "left: $(ls -A disk)"
# What cannot be kept is compiled again.
head -c 1M /dev/zero >disk/filler 2>/dev/null
XDG_CACHE_HOME=$folder/disk "$aplc" run one.fut '[1]' >out 2>err || fail "no room to keep objects is an error"
[[ $(<out) == "[2i32]" ]] || fail "$(<out)"

((failures == 0)) || { echo "$failures failures"; exit 1; }
