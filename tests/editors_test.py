#!/usr/bin/env python3
"""The words that editors highlight are the operations and types of the IR: editors_test.py SOURCE_TREE"""

import json
import re
import sys

tree = sys.argv[1]


def read(name):
    with open(f"{tree}/{name}", encoding="utf-8") as file:
        return file.read()


listed = re.findall(r'^APL_(?:NODE|UNARY|BINARY|COMPARE)\(\w+, "([a-z_0-9]+)"', read("ir/ops.def"), re.M)
types = re.findall(r'^APL_SCALAR\(\w+,\s*\w+,\s*"(\w+)"', read("ir/scalar_types.def"), re.M)
if len(listed) < 50 or len(types) < 10:
    sys.exit("the lists of the IR could not be read")
vim = read("editors/vim/syntax/aplir.vim").split()
grammar = json.dumps(json.loads(read("editors/vscode/syntaxes/aplir.tmLanguage.json")))
code = set(re.findall(r"[a-z_0-9]+", grammar))
missing = [w for w in (*listed, *types) if w not in vim or w not in code]
if missing:
    sys.exit(f"not highlighted: {', '.join(sorted(set(missing)))}")
print(f"{len(set(listed))} operations and {len(types)} types")
