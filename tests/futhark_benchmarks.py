#!/usr/bin/env python3
"""Runs `aplc test` over Futhark's benchmark programs, one at a time, and prints a line for each.

    tests/futhark_benchmarks.py TREE [--aplc FILE] [--backend c] [--timeout 60] [--json FILE] [PROGRAM...]

TREE is an unpacked tree of Futhark's benchmark programs, which is not in this repository; without PROGRAM, a path
relative to TREE, all outside of folders `lib` are run. Of each program's cases the table has how many are right and
wrong, how many of those right were compared with nothing (there is no expected value, and the interpreter needs too
long), how many were out of time, and how many lack their data. What is wrong is printed below its program.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LATE = ("time-out", "no reference")


def run_tests(args, program):
    """The records of the program's tests; a record of failure where `aplc test` gives none."""
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder) / "tests.json"
        command = [args.aplc, "test", f"--backend={args.backend}", f"--reference={args.reference}", "--concurrency=1",
                   f"--timeout={args.timeout}", f"--reference-timeout={args.reference_timeout}",
                   f"--memory={args.memory}", f"--json={records}", program.name]
        done = subprocess.run(command, cwd=program.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not records.exists():
            return [{"test": "run", "status": "failed", "kind": "crash", "entry": "", "case": "aplc test",
                     "message": done.stdout[-300:]}]
        return json.loads(records.read_text())["tests"]


class Row:
    """The tests of one program, by what came of them."""

    def __init__(self, name, tests):
        failed = [test for test in tests if test["status"] == "failed"]
        self.name = name
        self.right = sum(test["status"] == "passed" for test in tests)
        self.compiled = not any(test["kind"] in ("compile error", "unsupported", "compiler bug") for test in failed)
        self.late = [test for test in failed if test["kind"] in LATE]
        self.no_data = [test for test in failed if test["kind"] == "bad test"]
        self.wrong = [test for test in failed if test not in self.late and test not in self.no_data]
        self.seconds = sum(test.get("seconds", 0) for test in tests)

    def numbers(self):
        return [self.right, len(self.wrong), len(self.late), len(self.no_data)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--aplc", default=str(ROOT / "build/bin/aplc"))
    parser.add_argument("--backend", default="c")
    parser.add_argument("--reference", default="interp", choices=["interp", "c"])
    parser.add_argument("--timeout", default="60", help="seconds for a case")
    parser.add_argument("--reference-timeout", default="20", help="seconds for the interpreter's result")
    parser.add_argument("--memory", default="12", help="GiB for a process")
    parser.add_argument("--json", type=pathlib.Path, help="file for all records")
    args = parser.parse_intermixed_args()
    names = args.programs or sorted(str(file.relative_to(args.tree)) for file in args.tree.rglob("*.fut")
                                    if "lib" not in file.relative_to(args.tree).parts[:-1])
    rows, records = [], {}
    print(f"{'program':62}{'right':>6}{'wrong':>6}{'late':>6}{'no data':>8}{'s':>7}")
    for name in names:
        tests = run_tests(args, (args.tree / name).resolve())
        records[name] = tests
        row = Row(name, tests)
        rows.append(row)
        right, wrong, late, no_data = row.numbers()
        print(f"{name:62}{right:6}{wrong:6}{late:6}{no_data:8}{row.seconds:7.0f}")
        for test in row.wrong:
            text = test["message"].strip().splitlines() or [""]
            print(f"    {test['entry']} {test['case']}: {test['kind']}: {text[0][:150]}")
        sys.stdout.flush()
        if args.json:
            args.json.write_text(json.dumps(records, indent=1))
    sums = [sum(column) for column in zip(*(row.numbers() for row in rows))]
    print(f"{len(rows)} programs, {sum(row.compiled for row in rows)} compile; cases: {sums[0]} right, {sums[1]} wrong, "
          f"{sums[2]} out of time, {sums[3]} without data")
    return 1 if sums[1] else 0


if __name__ == "__main__":
    sys.exit(main())
