#!/usr/bin/env bash
# Manual pages and completion of shells, as aplc prints them. usage: manual_test.sh APLC
set -u
aplc=$(realpath "$1")
failed=0
fail() { printf 'FAILED: %s\n' "$*"; failed=1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

pages=0
while IFS= read -r command; do
  # shellcheck disable=SC2086
  "$aplc" manual $command >"$folder/page" || fail "no page of '$command'"
  head -1 "$folder/page" | grep -q '^\.TH APLC' || fail "the page of '$command' has no title"
  grep -q '^\.B ' "$folder/page" || fail "the page of '$command' has no options"
  if command -v man >/dev/null; then
    LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -l "$folder/page" 2>"$folder/warnings" >/dev/null
    grep -v '^man: ' "$folder/warnings" | grep . && fail "the page of '$command' has mistakes"
  fi
  ((++pages))
done < <("$aplc" manual --list)
((pages > 20)) || fail "only $pages pages"
"$aplc" manual no-such-command 2>/dev/null && fail "a page of a command that there is not"
"$aplc" manual run | grep -q -- '\\-\\-backend' || fail "the page of run has no --backend"

"$aplc" completion bash >"$folder/aplc.bash"
complete_words() {  # the words of a line, the last of which is to be completed
  (
    . "$folder/aplc.bash"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _aplc
    echo "${COMPREPLY[*]}"
  )
}
[[ $(complete_words aplc sp) == sparse ]] || fail "aplc sp: $(complete_words aplc sp)"
[[ $(complete_words aplc sparse se) == search* ]] || fail "aplc sparse se: $(complete_words aplc sparse se)"
[[ $(complete_words aplc run --back) == --backend ]] || fail "aplc run --back: $(complete_words aplc run --back)"
[[ $(complete_words aplc run --backend em) == emulate ]] || fail "aplc run --backend em"
[[ $(complete_words aplc sparse search --ope) == --operator ]] || fail "aplc sparse search --ope"
cd "$folder" && touch mine.fut
[[ $(complete_words aplc run mi) == mine.fut ]] || fail "aplc run mi: $(complete_words aplc run mi)"
for shell in zsh fish; do
  "$aplc" completion $shell >"$folder/script"
  grep -q emulate "$folder/script" || fail "$shell does not know emulate"
  command -v $shell >/dev/null && { $shell -n "$folder/script" || fail "$shell does not read its script"; }
done
"$aplc" completion csh 2>/dev/null && fail "completion for csh"

"$aplc" --version | grep -q '^built with ' || fail "--version does not say the compiler"
"$aplc" --version | grep -q '^targets: .*cuda' || fail "--version does not say the targets"
exit $failed
