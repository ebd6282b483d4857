#!/usr/bin/env python3
"""Writes results of benchmarks: JSON with one record a line, numbers with six digits.

usage: results_file.py FILE.json ...    rewrites files that other programs wrote

A table of 200 measurements has 200 lines, so that a difference of two results is read line by line.
"""

import json
import math
import pathlib
import sys

LINE = 160  # a longer value of the document, or of one of its tables, is broken into its elements
RECORD = 8000  # a record of a table is one line up to this length


def rounded(value):
    """`value` with its floating-point numbers at six significant digits; whole ones as integers."""
    if isinstance(value, float) and math.isfinite(value):
        number = float(f"{value:.6g}")
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return value


def text(value, depth=0):
    """JSON of `value`, which is `depth` containers deep in its document: too long for a line, it has one element a line."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or depth + len(line) <= (LINE if depth < 2 else RECORD):
        return line
    begin = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        each = [f"{json.dumps(key, ensure_ascii=False)}: {text(element, depth + 1)}" for key, element in value.items()]
        return "{" + begin + f",{begin}".join(each) + "\n" + " " * depth + "}"
    return "[" + begin + f",{begin}".join(text(element, depth + 1) for element in value) + "\n" + " " * depth + "]"


def write(path, document):
    """Writes `document`, a JSON value, to `path`."""
    pathlib.Path(path).write_text(text(rounded(document)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    for file in sys.argv[1:]:
        write(file, json.loads(pathlib.Path(file).read_text(encoding="utf-8")))
