#!/usr/bin/env python3
"""Links and paths of the Markdown files: each names a file or heading of the tree.

usage: links_test.py TREE

Checked are relative links with their #heading, and paths in backticks that begin with a folder of the tree and end in a
file name, such as `ir/module.h`; those with a capital placeholder or a wildcard are patterns and are left out, as are
`tests/....fut`, which are names of Futhark's own tests.
"""
import pathlib
import re
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FOLDERS = "aplc|bench|capi|cmake|codegen|docs|editors|examples|frontend|ir|machine|passes|python|runtime|suite|tests"
PATH = re.compile(rf"^(?:{FOLDERS})(?:/[a-z0-9_.-]+)*/[a-z0-9_-]+\.[a-z0-9]+$")
MADE_UP = {"passes/fold_zeros.cpp"}  # what a tutorial has its reader write


def prose(text):
    """`text` without its fenced and indented blocks, line by line with numbers from 1."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, line


def headings(file):
    """The anchors of a file: its headings in lower case, with hyphens for blanks and no other punctuation."""
    found = set()
    for _, line in prose(file.read_text(encoding="utf-8")):
        if match := re.match(r"#+ +(.*)", line):
            words = re.sub(r"[^\w\- ]", "", match[1].lower()).replace(" ", "-")
            anchor, count = words, 0
            while anchor in found:
                count += 1
                anchor = f"{words}-{count}"
            found.add(anchor)
    return found


def faults(tree, file):
    """What is wrong in one file: line, text."""
    for number, line in prose(file.read_text(encoding="utf-8")):
        for target in LINK.findall(line):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            other = (file.parent / path).resolve() if path else file
            if not other.exists():
                yield number, f"the link {target} names no file"
            elif anchor and other.suffix == ".md" and anchor not in headings(other):
                yield number, f"the link {target} names no heading of {other.relative_to(tree)}"
        for path in CODE.findall(line):
            of_futhark = path.startswith("tests/") and path.endswith(".fut")
            if PATH.match(path) and not of_futhark and path not in MADE_UP and not (tree / path).exists():
                yield number, f"there is no {path}"


def main():
    tree = pathlib.Path(sys.argv[1]).resolve()
    files = [file for file in sorted(tree.rglob("*.md")) if "build" not in file.relative_to(tree).parts]
    count = 0
    for file in files:
        for number, text in faults(tree, file):
            print(f"{file.relative_to(tree)}:{number}: {text}")
            count += 1
    print(f"{len(files)} files, {count} faults")
    sys.exit(1 if count or not files else 0)


if __name__ == "__main__":
    main()
