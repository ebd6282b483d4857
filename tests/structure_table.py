#!/usr/bin/env python3
"""Our counts of SOACs and kernels beside those that Futhark's programs ask for.

    tests/structure_table.py TREE --lists DIR [--aplc FILE] [--all]

TREE and DIR are as for futhark_suite.py. A line is printed for each count in a `structure` block of a program of
fusion, tiling, segredomap, intrablock, dependence-analysis and soacs that our IR has, too: SOACs after `fuse`, kernels
by what `extract-kernels` made them of. Without --all only those that differ are printed, then how many agree. The last
column guesses the reason from the program's text; nothing is judged by it.
"""

import argparse
import collections
import json
import pathlib
import re
import subprocess
import tempfile

FOLDERS = ["fusion", "tiling", "segredomap", "intrablock", "dependence-analysis", "soacs"]
OURS = {"soacs": {"Screma", "Hist"}, "gpu": {"SegMap", "SegRed", "SegScan", "SegHist"}}

# Where we have more operations than Futhark, the first of these that the program uses is why, as a rule.
MORE = [
    (r"\bscan\b", "scan: what follows it stays behind it, an operation has no lambda after its operators"),
    (r"\bscatter\b", "scatter: one writes to one set of places, and makes no array of its own beside it"),
    (r"\btranspose\b", "contraction: what tile-contraction or a reduction in parallel can do better stays alone"),
    (r"", "siblings: operations beside each other stay apart"),
]
FEWER = [
    (r"\bwith\b|\blet \w+\[", "copy: an entry copies what it overwrites, so that the old array can still be read"),
    (r"", "fused or simplified further"),
]
KERNELS = [
    (r"only_intra|intrablock", "intra-block version: we have none"),
    (r"", "kernels are made in another way: see extract-kernels in docs/passes.md"),
]


def programs(tree, lists):
    for tier in ("L0", "L1"):
        for line in (lists / f"{tier}.public.txt").read_text().split():
            parts = pathlib.PurePath(line).parts
            if len(parts) > 2 and parts[1] in FOLDERS and (tree / line).exists():
                yield line


def rows(aplc, tree, names):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([aplc, "test", "-t", "-s", f"--json={out.name}", *(str(tree / n) for n in names)],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        tests = json.load(open(out.name))["tests"]
    for test in tests:
        pipeline = "".join(test.get("pipelines", [])) or "soacs"
        if test["test"] != "structure" or pipeline not in OURS:
            continue
        for path, wanted in test["wanted"]:
            name = path.lstrip("/")
            if name not in OURS[pipeline]:
                continue
            ours = test["counts"].get(path, test["counts"].get(name))
            if ours is not None:  # else the program cannot be compiled yet
                yield str(pathlib.Path(test["program"]).relative_to(tree)), pipeline, path, wanted, ours


def reason(tree, program, pipeline, wanted, ours):
    if wanted == ours:
        return ""
    text = re.sub(r"--.*", "", (tree / program).read_text())
    rules = KERNELS if pipeline == "gpu" else MORE if ours > wanted else FEWER
    return next(why for pattern, why in rules if re.search(pattern, text))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("--lists", type=pathlib.Path, required=True)
    parser.add_argument("--aplc", default="build/bin/aplc")
    parser.add_argument("--all", action="store_true", help="lines that agree, too")
    args = parser.parse_args()
    agree, total, reasons = collections.Counter(), collections.Counter(), collections.Counter()
    print(f"{'program':<58}{'after':<7}{'path':<10}{'theirs':>7}{'ours':>6}  reason")
    for program, pipeline, path, wanted, ours in rows(args.aplc, args.tree, list(programs(args.tree, args.lists))):
        folder = (pathlib.PurePath(program).parts[1], pipeline)
        total[folder] += 1
        agree[folder] += wanted == ours
        why = reason(args.tree, program, pipeline, wanted, ours)
        if why:
            reasons[pipeline, why] += 1
        if why or args.all:
            print(f"{program.removeprefix('tests/'):<58}{pipeline:<7}{path:<10}{wanted:>7}{ours:>6}  {why}")
    print()
    for folder in sorted(total):
        print(f"{folder[0]:<22}{folder[1]:<7}{agree[folder]:>4} of {total[folder]:>3} agree")
    for (pipeline, why), count in reasons.most_common():
        print(f"{count:>4}  {pipeline}: {why}")


main()
