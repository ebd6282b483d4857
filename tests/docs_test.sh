#!/usr/bin/env bash
# The shell lines of README.md, docs and examples/README.md: those that can be run are run, in the order of their file and
# in a folder of their own; of all others the options must be those of the command's --help.
#   - a line of an indented block whose first word is a program of ours, ./dev or a compiler is a shell line
#   - with `$ ` before it, the rest of the block is what it must print
#   - with FILE, DIR, [--option], ... in it, it is a synopsis: only its options are looked at
# With `installed` BIN has what is installed, and lines of programs that are only built are counted, not looked at.
# usage: docs_test.sh BIN SOURCE_TREE FOLDER [installed]
set -u
bin=$(realpath "$1") tree=$(realpath "$2") folder=$3 installed=${4:-}
rm -rf "$folder"
mkdir -p "$folder/build" "$folder/docs"
cd "$folder" || exit 1
ln -s "$bin" build/bin
cp -r "$tree/examples" examples
ln -s "$tree/tests" tests
PATH=$bin:$PATH
export XDG_CACHE_HOME=$folder/cache XDG_CONFIG_HOME=$folder/config
failed=0 run=0 looked_at=0 not_installed=0
fail() { printf 'FAILED: %s\n' "$*"; failed=1; }

# Files that lines speak of.
cp examples/tour/graph_layer.fut examples/demo/spmm.fut .
gunzip -c examples/demo/cora.mtx.gz > cora.mtx
sed 's/graph/A/g; s/\[m\]/[b]/g' examples/tour/graph_layer.fut > gcn.fut
cp cora.mtx M.mtx
aplc sparse convert M.mtx M.smtx || fail 'the fixture M.smtx'
aplc dataset -b -g '[2708][64]f32' > features.bin || fail 'the fixture features.bin'

# Lines that are not run here, each with its reason; their options are looked at.
reason_not_to_run() {
  case $1 in
    ./dev\ *) echo "builds apl, or runs this test" ;;
    *apl_*_tests*) echo "the suite runs it with other numbers" ;;
    tests/*) echo "needs tools or folders that are not here" ;;
    apl_sparse_gpu*) echo "needs a GPU, or minutes" ;;
    *--backend=cuda*) echo "needs a GPU" ;;
    *bad.fut* | *bad.aplir*) echo "needs a pass that is wrong: random/planted has some" ;;
    *--pass-plugin=libdouble_to_add.so*) echo "install/build builds plug-ins, and install/run runs them" ;;
    "build/bin/aplc test examples") echo "program/ tests run the examples" ;;
    *"aplc bench "*) echo "measures until its times agree; tree/command has it with limits" ;;
    *calibrate*) echo "measures for a minute" ;;
  esac
}
is_synopsis() {
  local line=" ${1//\'\[*\]*\'/} "  # types as in '[10][20]f32' are none
  [[ $line =~ \.\.\.|\[-|\[[A-Z]|[\ =](COMMAND|FILE|CMD|PREFIX|TREE|DIR|KINDS|SMALL|PIPELINE)[\ |.] ]]
}

# What the line's first command says of its options.
help_of() {
  local -a words
  read -ra words <<< "$1"
  case ${words[0]} in
    ./dev) "$tree/dev" help ;;
    *aplc)
      local sub=${words[1]:-}
      [[ $sub == COMMAND ]] && sub=opt
      if [[ $sub == sparse ]]; then aplc sparse "${words[2]}" --help; else aplc "$sub" --help; fi ;;
    *apl_*) "$bin/$(basename "${words[0]}")" --help 2>&1 ;;
  esac
}
look_at_options() {
  local line=$1 help option
  case $line in
    tests/*)
      [[ -x $tree/${line%% *} ]] || fail "$where: there is no program ${line%% *}"
      return ;;
    ./dev\ *)
      local -a words
      read -ra words <<< "$line"
      "$tree/dev" help | grep -qE "^  ${words[1]}( |$)" || fail "$where: ./dev help does not know '${words[1]}'"
      return ;;
  esac
  if [[ -n $installed && $line =~ ^(build/bin/)?(apl_[a-z_]+) && ! -x $bin/${BASH_REMATCH[2]} ]]; then
    ((++not_installed))
    return
  fi
  help=$(help_of "$line") || fail "$where: no help of: $line"
  line=${line%%\"aplc*}
  for option in $(grep -oE -e '[ \[]--?[a-zA-Z][a-zA-Z0-9-]*' <<< "$line" | tr -d ' ['); do
    [[ $option == --*-bounds ]] && option=--T-bounds
    grep -qE -e "(^|[ ,])$option([ ,=\[]|$)" <<< "$help" || fail "$where: $option is no option of: $line"
  done
  ((++looked_at))
}

check_line() {  # LINE EXPECTED
  local line=$1 expected=$2 shown
  # Comments are no part of it.
  line=$(sed -E 's/  +# .*//; s/[[:space:]]+$//' <<< "$line")
  if is_synopsis "$line" || [[ -n $(reason_not_to_run "$line") ]]; then
    look_at_options "$line"
    return
  fi
  ((++run))
  local start=$SECONDS
  shown=$(bash -c "$line" 2> errors.txt) || fail "$where: exit code $? of: $line
$(tail -5 errors.txt)"
  ((SECONDS - start < 20)) || echo "$where: $((SECONDS - start)) s for: $line"
  [[ -z $expected || $shown == "$expected" ]] || fail "$where: it does not print what is there: $line
$(diff <(echo "$expected") <(echo "$shown"))"
}

check_file() {
  local file=$1 number=0 text block='' fenced=0 before='' pending='' expected='' joined=''
  while IFS= read -r text || [[ -n $text ]]; do
    ((++number))
    if [[ $text == '```'* ]]; then fenced=$((1 - fenced)); before=x; continue; fi
    ((fenced)) && continue
    if [[ $text == '    '* && (-z $before || -n $block) ]]; then
      block=1
      text=${text#    }
      if [[ -n $pending ]]; then
        expected+=${expected:+$'\n'}$text
      elif [[ $text == '$ '* ]]; then
        where=$file:$number pending=${text#'$ '} expected=''
      else
        [[ -z $joined ]] && where=$file:$number
        joined+=$text
        if [[ $joined == *'\' ]]; then joined=${joined%'\'}; continue; fi
        text=$joined joined=''
        [[ $text =~ ^(build/bin/|\./dev\ |aplc\ |cc\ |tests/|apl_[a-z_]+\ ) ]] && check_line "$text" ''
      fi
    else
      [[ -n $pending ]] && check_line "$pending" "$expected"
      pending='' block=''
    fi
    before=$text
  done < "$tree/$file"
  [[ -n $pending ]] && check_line "$pending" "$expected"
}

for path in "$tree"/README.md "$tree"/docs/*.md "$tree"/examples/README.md; do check_file "${path#"$tree/"}"; done

# Programs: what is fenced as futhark compiles, and tables of programs and messages in language.md are exact.
awk '/^```futhark/ {++n; on = 1; next} /^```/ {on = 0} on {print > "block" n ".fut"}' "$tree/docs/language.md"
blocks=0
for program in block*.fut; do
  aplc check "$program" > /dev/null 2> errors.txt || fail "language.md, a program: $(head -3 errors.txt)"
  ((++blocks))
done
rows=0
while IFS= read -r text; do
  text=${text//'\|'/$'\x01'}
  IFS='|' read -r _ program message _ <<< "$text"
  program=$(sed -E 's/^ *`+ ?//; s/ ?`+ *$//; s/\x01/|/g' <<< "$program")
  message=$(sed -E 's/^ *`+ ?(\.\.\. )?//; s/ ?`+ *$//; s/\x01/|/g' <<< "$message")
  printf '%s\n' "$program" > row.fut
  aplc check row.fut > /dev/null 2> errors.txt
  grep -qF -e "$message" errors.txt || fail "language.md: $program
  says: $(grep -m1 error: errors.txt)
  not:  $message"
  ((++rows))
done < <(grep -E '^\| `+ ?(def|entry|module|type) [^|]*`+ \| `[^`]*`+ \|$' "$tree/docs/language.md")
((blocks >= 2 && rows >= 10)) || fail "language.md: $blocks programs and $rows rows are found"
# Pipelines in docs and in installed headers.
pipelines=0
while IFS= read -r pipeline; do
  aplc opt -p "$pipeline" examples/mm0.fut > /dev/null 2> errors.txt || fail "the pipeline $pipeline: $(head -3 errors.txt)"
  ((++pipelines))
done < <(sed -E 's/^ *(\/\/)? *//' "$tree"/docs/*.md "$tree"/passes/*.h | grep -E '^[a-z-]+(\{[^}]*\})?(,[a-z-]+(\{[^}]*\})?){2,}$')
((pipelines >= 2)) || fail "$pipelines pipelines are found"

# Each code of a message is documented, in the words of its declaration.
codes=0
while IFS='"' read -r _ code _ summary _; do
  row=$(grep -F -e "| \`$code\` |" "$tree/docs/diagnostics.md")
  [[ $row == *"| $summary |" ]] || fail "diagnostics.md: no row for $code: $summary"
  ((++codes))
done < <(grep '^APL_DIAGNOSTIC(' "$tree/ir/diagnostics.def")
((codes > 40)) || fail "only $codes codes of messages are found"

# README's program is the file that it names.
diff <(sed -n '/^```futhark/,/^```/p' "$tree/README.md" | sed '1d;$d') \
  <(head -9 "$tree/examples/tour/graph_layer.fut") || fail "README's program is not examples/tour/graph_layer.fut"
# Links between files lead somewhere.
for path in "$tree"/README.md "$tree"/docs/*.md "$tree"/examples/README.md; do
  while IFS= read -r link; do
    [[ $link =~ ^(https?:|#|$) ]] && continue
    [[ -e $(dirname "$path")/${link%%#*} ]] || fail "${path#"$tree/"}: a link to $link, which is not there"
  done < <(sed '/^```/,/^```/d' "$path" | grep -oE '\]\([^) ]+\)' | sed 's/^](//; s/)$//')
done
# Files that are named are there; in a row of a table a file without a folder lies in that of the one before it, or is to
# be found by its name. Not those of the example in adding-a-pass.md, nor of Futhark's own tests in testing.md.
rooms='ir|passes|codegen|runtime|frontend|machine|suite|aplc|capi|python|tests|bench|examples|cmake|docs'
named=0
while read -r path row name; do  # row: its number in the file, 0 outside of tables
  [[ $name == *NAME* || $name == *BACKEND* || $name == *fold_zeros* ]] && continue
  if [[ $name =~ ^($rooms)/ ]]; then
    [[ $name == tests/*.fut && $name != tests/programs/* ]] && continue
    [[ -e $tree/$name ]] || fail "$path: there is no $name"
    inside=${name%/*} of=$path:$row
  elif [[ $row != 0 && ${of:-} == "$path:$row" ]]; then
    [[ -e $tree/$inside/$name || -e $tree/${inside%/*}/$name || -n $(find "$tree/$inside" -name "${name##*/}" -print -quit) ]] ||
      fail "$path: there is no $name in $inside"
  else
    continue
  fi
  ((++named))
done < <(cd "$tree" && awk -F'`' '
  FNR == 1 { fenced = 0 }
  /^```/ { fenced = !fenced }
  !fenced { for (k = 2; k <= NF; k += 2)
    if ($k ~ /^[a-z_]+(\/[A-Za-z0-9_.-]+)*(\/|\.(cpp|h|c|cu|def|py|cmake|sh|txt|fut|map))$/)
      print FILENAME, /^\|/ ? FNR : 0, $k }' README.md CONTRIBUTING.md docs/*.md)
((named > 200)) || fail "only $named files are named"
((run > 15 && looked_at > 20)) || fail "only $run lines are run, and $looked_at looked at"
((not_installed == 0)) || echo "$not_installed lines are of programs that are not installed"
echo "$run lines are run, of $looked_at others the options are looked at"
exit $failed
