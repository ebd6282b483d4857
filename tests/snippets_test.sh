#!/usr/bin/env bash
# The C++ of README.md and docs compiles: every ```cpp block, each in a namespace of its own, as one file. Blocks of
# statements stand in a function; what the text around a block takes as given is declared here.
# usage: snippets_test.sh COMPILER SOURCE_TREE FOLDER
set -eu
compiler=$1 tree=$(realpath "$2") folder=$3
rm -rf "$folder"
mkdir -p "$folder/include"
ln -s "$tree" "$folder/include/apl"
for page in "$tree"/README.md "$tree"/docs/*.md "$tree"/examples/README.md; do
  awk -v page="${page#"$tree/"}" -v folder="$folder" '
    /^```cpp$/ { inside = 1; first = NR + 1; text = ""; statements = 0; next }
    /^```/ && inside {
      inside = 0
      printf "namespace snippet_%d_%d {\n", FNR, length(page) > (folder "/blocks")
      if (statements) printf "int snippet(apl::Module& module, std::string text, apl::PipelineOptions options) {\n{\n" > (folder "/blocks")
      printf "#line %d \"%s\"\n%s", first, page, text > (folder "/blocks")
      if (statements) printf "}\nreturn 0;\n}\n" > (folder "/blocks")
      printf "}\n" > (folder "/blocks")
      ++count
    }
    inside && /^#include/ { print > (folder "/includes"); text = text "\n"; next }
    inside { if (/^(auto|const auto|if) /) statements = 1; text = text $0 "\n" }
    END { print count + 0 > (folder "/count"); close(folder "/count") }' "$page"
  cat "$folder/count" >>"$folder/counts"
  if [[ -e $folder/blocks ]]; then cat "$folder/blocks" >>"$folder/all_blocks"; rm "$folder/blocks"; fi
  if [[ -e $folder/includes ]]; then cat "$folder/includes" >>"$folder/all_includes"; rm "$folder/includes"; fi
done
count=$(awk '{ sum += $1 } END { print sum + 0 }' "$folder/counts")
((count > 0)) || { echo "no \`\`\`cpp block was found"; exit 1; }
{
  cat "$folder/all_includes"
  cat <<'TEXT'
#include <iostream>
#include <string>

#include "codegen/codegen.h"
#include "codegen/emit/library.h"
#include "frontend/frontend.h"
#include "passes/pipeline.h"

using namespace apl;
PassInfo double_to_add_pass();
Result<Change> run(Module& module, PassContext& context);
int fail(const Diagnostic& error);
TEXT
  cat "$folder/all_blocks"
} >"$folder/snippets.cpp"
"$compiler" -std=c++20 -fsyntax-only -I"$tree" -I"$folder/include" "$folder/snippets.cpp"
echo "$count blocks compile"
