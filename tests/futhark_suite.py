#!/usr/bin/env python3
"""Runs `aplc test` over Futhark's own test programs and prints how many are right, by tier and kind.

    tests/futhark_suite.py TREE --lists DIR [--backend c] [--tiers L0,L1] [--update]

TREE is an unpacked Futhark source tree; DIR holds L0.public.txt, L1.public.txt: one path a line, relative to TREE.
Neither is in this repository. What is: tests/futhark_pass_list.txt, the names of the programs that pass, each with its
backends; the script fails if one of them no longer does, and --update rewrites it.

A program with data is right if every case that is not skipped passes; one that must not compile if it is refused as
the user's error (exit code 2 of `aplc check`) with a matching message; any other if it compiles for the backend.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ["with data", "must not compile", "compile only"]


class Program:
    """What came of one program: its kind, and the tests that failed."""

    def __init__(self, tests):
        ran = [test for test in tests if test["status"] != "skipped"]
        if any(test["test"] == "error" for test in tests):
            self.kind = "must not compile"
        elif any(test["test"] == "run" for test in ran):
            self.kind = "with data"
        else:
            self.kind = "compile only"
        self.skipped = not ran
        self.failures = [test for test in ran if test["status"] != "passed"]
        self.passed = bool(ran) and not self.failures


BACKENDS = ["interp", "c", "emulate", "cuda"]


def read_list(file):
    lines = (line.strip() for line in file.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def read_pass_list(file):
    """The backends on which each program passes; the file has a line `NAME interp c emulate cuda`, with - where not."""
    return {name: set(columns) - {"-"} for name, *columns in map(str.split, read_list(file))} if file.exists() else {}


def write_pass_list(file, passes):
    lines = [f"# Futhark's test programs that pass, and on which backends: {' '.join(BACKENDS)}"]
    for name, backends in sorted(passes.items()):
        if backends:
            lines.append(" ".join([name, *(backend if backend in backends else "-" for backend in BACKENDS)]))
    file.write_text("\n".join(lines) + "\n")


def run_tests(args, names):
    """Program of each name, by one run of `aplc test`."""
    tree = args.tree.resolve()
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder) / "tests.json"
        command = [args.aplc, "test", f"--backend={args.backend}", f"--json={records}", f"--timeout={args.timeout}"]
        if args.reference:
            command.append(f"--reference={args.reference}")
        if args.concurrency:
            command.append(f"--concurrency={args.concurrency}")
        done = subprocess.run(command + [str(tree / name) for name in names], stdout=subprocess.PIPE, text=True)
        if done.returncode not in (0, 1) or not records.exists():
            sys.exit(f"aplc test failed with exit code {done.returncode}\n{done.stdout}")
        text = records.read_text()
    if args.json:
        pathlib.Path(args.json).write_text(text)
    tests = collections.defaultdict(list)
    for test in json.loads(text)["tests"]:
        tests[str(pathlib.Path(test["program"]).relative_to(tree))].append(test)
    return {name: Program(tests[name]) for name in names}


def print_table(tiers, programs):
    print(f"{'':6}{'':18}{'right':>7}{'wrong':>7}{'skipped':>9}{'percent':>9}")
    everything = [name for names in tiers.values() for name in names]
    for tier, names in [*tiers.items(), ("all", everything)] if len(tiers) > 1 else tiers.items():
        for kind in KINDS + ["all"]:
            some = [programs[name] for name in names if kind in ("all", programs[name].kind)]
            skipped = sum(program.skipped for program in some)
            right = sum(program.passed for program in some)
            judged = len(some) - skipped
            percent = f"{100 * right / judged:.1f}" if judged else "-"
            print(f"{tier:6}{kind:18}{right:7}{judged - right:7}{skipped:9}{percent:>9}")


def first_line(message):
    return message.strip().split("\n")[0][:200]


def reason(test):
    """The message without its place and without what differs between programs."""
    text = re.sub(r"^(Error: )?(\d+:\d+: )?(error: )?", "", first_line(test["message"]))
    text = re.sub(r"array `[^`]*`", "array _", text)
    text = re.sub(r"\[[^\[\]]*\](?=[\[a-z_])|Sizes .* do not", "_", text)
    return test["kind"] + ": " + re.sub(r"-?\d+(\.\d+)?(e-?\d+)?([iuf]\d+)?", "N", text)


def print_failures(programs):
    by_kind = collections.defaultdict(list)
    reasons = collections.Counter()
    for name, program in programs.items():
        kinds = {}
        for test in program.failures:
            kinds.setdefault(test["kind"] or "not run", test)
        for kind, test in kinds.items():
            by_kind[kind].append((name, test))
        reasons.update({reason(test) for test in program.failures})
    for kind, failures in sorted(by_kind.items()):
        print(f"\n{kind}: {len(failures)} programs")
        for name, test in failures:
            case = f" ({test['entry']} {test['case']})" if test["test"] == "run" else ""
            print(f"  {name}{case}: {first_line(test['message'])}")
    if reasons:
        print("\nmost frequent reasons, by programs")
        for text, count in reasons.most_common(25):
            print(f"  {count:4}  {text}")


def check_pass_list(args, programs):
    """Exit code: 1 if a program of the list was run and did not pass."""
    file = args.pass_list or ROOT / "tests" / "futhark_pass_list.txt"
    passes = read_pass_list(file)
    listed = {name for name, backends in passes.items() if args.backend in backends}
    passed = {name for name, program in programs.items() if program.passed}
    lost = sorted(name for name in listed - passed if name in programs)
    new = sorted(passed - listed)
    if args.update:
        for name in new:
            passes.setdefault(name, set()).add(args.backend)
        for name in lost:
            passes[name].discard(args.backend)
        write_pass_list(file, passes)
        print(f"\n{file}: {len(new)} added, {len(lost)} removed, {len(listed) + len(new) - len(lost)} on {args.backend}")
        return 0
    if new:
        print(f"\n{len(new)} programs pass that {file.name} does not have (--update adds them)")
    if lost:
        print(f"\n{len(lost)} programs no longer pass:")
        for name in lost:
            print(f"  {name}")
    return 1 if lost else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=pathlib.Path, help="Futhark's source tree")
    parser.add_argument("--lists", type=pathlib.Path, required=True, help="folder with L0.public.txt, L1.public.txt")
    parser.add_argument("--tiers", default="L0,L1", help="which lists (default: L0,L1)")
    parser.add_argument("--backend", default="c", choices=BACKENDS)
    parser.add_argument("--aplc", default=str(ROOT / "build" / "bin" / "aplc"))
    parser.add_argument("--pass-list", type=pathlib.Path, help="default: tests/futhark_pass_list.txt")
    parser.add_argument("--update", action="store_true", help="rewrite the pass list")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for a program")
    parser.add_argument("--reference", choices=["interp", "c", "interp-or-c"], help="see aplc test --help")
    parser.add_argument("--concurrency", type=int, help="programs at a time")
    parser.add_argument("--json", help="keep the records of aplc test in this file")
    args = parser.parse_args()
    tiers = {tier: read_list(args.lists / f"{tier}.public.txt") for tier in args.tiers.split(",")}
    names = [name for tier in tiers.values() for name in tier]
    missing = [name for name in names if not (args.tree / name).exists()]
    if missing:
        sys.exit(f"{len(missing)} programs of the lists are not in {args.tree}, such as {missing[0]}")
    programs = run_tests(args, names)
    print(f"backend {args.backend}")
    print_table(tiers, programs)
    print_failures(programs)
    sys.exit(check_pass_list(args, programs))


if __name__ == "__main__":
    main()
