#!/usr/bin/env python3
"""Runs `aplc test` over Futhark's benchmark programs, --jobs at a time, and prints a line for each.

    tests/futhark_benchmarks.py TREE [--aplc FILE] [--backend c] [--timeout 60] [--jobs 1] [--json FILE] [--random N]
                               [PROGRAM...]

TREE is an unpacked tree of Futhark's benchmark programs, which is not in this repository; without PROGRAM, a path
relative to TREE, all outside of folders `lib` are run. Of each program's cases the table has how many are right and
wrong, how many of those right were compared with nothing (there is no expected value, and the interpreter needs too
long), how many were out of time, and how many lack their data. What is wrong is printed below its program.

With --random N, each entry whose cases lack data, and no other, is run with N random inputs instead, of small sizes
and numbers that its types leave open. The backend must agree with the interpreter: the same values, or an error of the
program's, as an index out of bounds where the numbers mean nothing. Inputs with which a program reads out of bounds in
an expression marked #[unsafe] are left out.
"""
import argparse
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LATE = ("time-out", "no reference")
# Of a type: its letters in Python's struct, and in the binary format of values.
FORMATS = {"i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f16": "e",
           "f32": "f", "f64": "d", "bool": "?"}


class Random:
    """Values for the parameters of an entry: number `k` of the tries, which differ in sizes and in what numbers are."""

    def __init__(self, seed, k):
        self.random = random.Random(f"{seed} {k}")
        self.alike = k % 3 != 2  # all sizes that the types leave open are the same
        self.size = [8, 16, 5, 33, 2, 64, 3][k % 7]
        self.least = -self.size if k % 5 == 4 else 0
        self.sizes = {}

    def size_of(self, text):
        """A size as the IR writes it, of names and numbers."""
        names = set(re.findall(r"[A-Za-z_]\w*", text)) - {"floor_div", "floor_mod", "min", "max"}
        for name in sorted(names - set(self.sizes)):
            self.sizes[name] = self.size if self.alike else self.random.randint(1, self.size)
        names = dict(self.sizes, floor_div=lambda x, y: x // y, floor_mod=lambda x, y: x % y, min=min, max=max)
        return max(0, int(eval(text, {"__builtins__": {}}, names)))

    def number(self, kind):
        if kind == "bool":
            return self.random.random() < 0.5
        if kind.startswith("f"):
            return self.random.random() if self.least == 0 else self.random.uniform(-2, 2)
        return self.random.randint(0 if kind.startswith("u") else self.least, self.size - 1)

    def value(self, name, kind, dims):
        sizes = [self.size_of(dim) for dim in dims]
        count = 1
        for size in sizes:
            count *= size
        if count > 1 << 20:
            return None
        # A scalar may be how often something is done, or how large a result is.
        numbers = [self.number(kind) for _ in range(count)] if dims else [self.number(kind)]
        if not dims and kind in ("i32", "i64"):
            numbers = [self.random.randint(1, self.size)]
            self.sizes[name] = numbers[0]
        head = b"b" + bytes([2, len(sizes)]) + kind.encode().rjust(4)
        return head + struct.pack(f"<{len(sizes)}q", *sizes) + struct.pack(f"<{len(numbers)}{FORMATS[kind]}", *numbers)


def parameters(args, program):
    """Of each entry: its parameters as (name, scalar type, dims)."""
    text = subprocess.run([args.aplc, "opt", program.name], cwd=program.parent, capture_output=True, text=True).stdout
    found = {}
    for name, params in re.findall(r"^fun ([\w']+) (?:\[[^\]]*\] )*\((.*)\) : (?:\{|exists)", text, re.MULTILINE):
        split = re.findall(r"([\w'.]+) : (\*?)((?:\[[^\]]*\])*)(\w+)", params)
        found[name] = [(param, kind, re.findall(r"\[([^\]]*)\]", dims)) for param, _, dims, kind in split]
    return found


def run_random(args, program, entries):
    """Records as those of `aplc test`, for random inputs of these entries."""
    records = []
    of_entries = parameters(args, program)
    with tempfile.TemporaryDirectory() as folder:
        spec, files = [], {}
        for entry, k in itertools.product(entries, range(args.random)):
            values = Random(entry, k)
            made = [values.value(*param) for param in of_entries.get(entry, [])]
            if entry not in of_entries or None in made:
                continue
            file = pathlib.Path(folder) / f"{entry}-{k}.in"
            file.write_bytes(b"".join(made))
            files[f"{entry} {k}"] = file
            spec.append(f"Random values.\n==\nentry: {entry}\n\"{entry} {k}\" input @ {file} auto output\n")
        if not spec:
            return records
        blocks = pathlib.Path(folder) / "spec"
        blocks.write_text("\n".join(spec))
        for test in run_tests(args, program, [f"--spec-file={blocks}", "--no-tuning"]):
            name = next((name for name in files if f'"{name}"' in test["case"] or name == test["case"]), None)
            if name is None:
                continue
            if test["status"] == "failed" and test["kind"] in ("run-time error", "no reference", "crash"):
                judge_error(args, program, test, files[name])
            records.append(test)
    return records


def judge_error(args, program, test, file):
    """An error is right where both stop with one: which of several checks fails first is free.

    What reads out of bounds where it is marked #[unsafe] means nothing.
    """
    codes = []
    for backend in ("interp", args.backend):
        command = [args.aplc, "run", f"--backend={backend}", "-e", test["entry"], program.name, f"@{file}"]
        try:
            done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, errors="replace",
                                  timeout=float(args.reference_timeout), env=dict(os.environ, OMP_NUM_THREADS="1"))
        except subprocess.TimeoutExpired:
            test["kind"] = "time-out"
            return
        code = re.search(r"error: .*\[([a-z]+\.[a-z-]+)\]$", done.stderr, re.MULTILINE)
        if backend == "interp" and "error: Unchecked " in done.stderr:
            test.update(status="skipped", kind="unsafe")
            return
        codes.append(code.group(1) if code else str(done.returncode))
    if codes == ["0", "0"]:
        return
    if all(code.startswith("run.") for code in codes):
        test.update(status="passed", kind="same error", message=" and ".join(codes))
    else:
        test.update(kind="wrong result", message=f"interpreter: {codes[0]}, {args.backend}: {codes[1]}")


def run_tests(args, program, more=()):
    """The records of the program's tests; a record of failure where `aplc test` gives none."""
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder) / "tests.json"
        command = [args.aplc, "test", f"--backend={args.backend}", f"--reference={args.reference}", "--concurrency=1",
                   f"--timeout={args.timeout}", f"--reference-timeout={args.reference_timeout}",
                   f"--memory={args.memory}", f"--json={records}", *more, program.name]
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
        self.unsafe = [test for test in tests if test["kind"] == "unsafe"]
        self.same_error = [test for test in tests if test["kind"] == "same error"]
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
    parser.add_argument("--reference", default="interp", choices=["interp", "c", "interp-or-c"])
    parser.add_argument("--timeout", default="60", help="seconds for a case")
    parser.add_argument("--reference-timeout", default="20", help="seconds for the interpreter's result")
    parser.add_argument("--memory", default="12", help="GiB for a process")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="random inputs for entries without data")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time")
    parser.add_argument("--json", type=pathlib.Path, help="file for all records")
    args = parser.parse_intermixed_args()
    names = args.programs or sorted(str(file.relative_to(args.tree)) for file in args.tree.rglob("*.fut")
                                    if "lib" not in file.relative_to(args.tree).parts[:-1])
    rows, records = [], {}

    def row_of(name):
        """The program's row and records; no row where there is nothing to run."""
        program = (args.tree / name).resolve()
        tests = run_tests(args, program)
        row = Row(name, tests)
        if args.random and row.no_data:
            tests = run_random(args, program, sorted({test["entry"] for test in row.no_data}))
            row = Row(name, tests)
        elif args.random:
            row = None
        return name, row, tests

    print(f"{'program':62}{'right':>6}{'wrong':>6}{'late':>6}{'no data':>8}{'s':>7}")
    pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
    for name, row, records[name] in pool.map(row_of, names):
        if row is None:
            continue
        rows.append(row)
        right, wrong, late, no_data = row.numbers()
        print(f"{name:62}{right:6}{wrong:6}{late:6}{no_data:8}{row.seconds:7.0f}" +
              (f"  {len(row.same_error)} of those right are errors" if row.same_error else "") +
              (f"  {len(row.unsafe)} unsafe" if row.unsafe else ""))
        for test in row.wrong:
            text = test["message"].strip().splitlines() or [""]
            print(f"    {test['entry']} {test['case']}: {test['kind']}: {text[0][:150]}")
        sys.stdout.flush()
        if args.json:
            args.json.write_text(json.dumps(records, indent=1))
    sums = [sum(column) for column in zip(*(row.numbers() for row in rows))]
    print(f"{len(rows)} programs, {sum(row.compiled for row in rows)} compile; cases: {sums[0]} right, {sums[1]} wrong, "
          f"{sums[2]} out of time, {sums[3]} without data")
    if args.random:
        print(f"{sum(len(row.same_error) for row in rows)} of those right are errors; "
              f"{sum(len(row.unsafe) for row in rows)} read out of bounds where that is unsafe; "
              f"{sum(row.right > len(row.same_error) for row in rows)} programs have values that are right")
    return 1 if sums[1] else 0


if __name__ == "__main__":
    sys.exit(main())
