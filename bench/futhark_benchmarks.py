#!/usr/bin/env python3
"""Times of Futhark's benchmark programs, one after the other: whole calls, and on a GPU their kernels alone.

    bench/futhark_benchmarks.py TREE [--aplc FILE] [--backend cuda] [--jobs 8] [--seconds 40] [--json FILE] [PROGRAM...]

TREE is an unpacked tree of Futhark's benchmark programs, which is not in this repository; without PROGRAM, a path relative
to TREE, all outside of folders `lib` and `micro` are measured. A case whose data is elsewhere is left out. A time is the
median of at least five calls, with arguments and results on the device; `kernels` is the sum over one call's kernels, each
between two events of the device, in a second run for which they are waited for one by one. --seconds is for one program's
run. Programs are compiled --jobs at a time, measured alone. Exit status 1 if a case fails.
"""
import argparse
import concurrent.futures
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import results_file

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measured(args, name, *options):
    """Of each case what `aplc bench` records, or the reason why there is nothing."""
    program = args.tree / name
    with tempfile.TemporaryDirectory() as folder:
        record = pathlib.Path(folder) / "times.json"
        command = [args.aplc, "bench", f"--backend={args.backend}", "--no-tuning", "--no-convergence-phase",
                   "--convergence-max-seconds=1", f"--timeout={args.seconds}", f"--json={record}", *options, program.name]
        try:
            done = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, errors="replace",
                                  timeout=args.seconds)
        except subprocess.TimeoutExpired:
            return {}, "not all in time"
        if not record.exists():
            return {}, (done.stderr or done.stdout).strip()[-200:]
        cases = {}
        for entry, of_entry in json.loads(record.read_text()).items():
            for case, values in of_entry["datasets"].items():
                cases[entry.partition(".fut")[2].lstrip(":") or "main", case] = values
        return cases, ""


def kernels_of(profile):
    """Microseconds of kernels in the report's last call, and their number."""
    events = profile["events"]
    call = [event for event in events if event["kind"] == "call"][-1]
    inside = [event["end"] - event["start"] for event in events
              if event["kind"] == "kernel" and call["start"] <= event["end"] <= call["end"]]
    return sum(inside) / 1e3, len(inside)


def rows_of(args, name):
    """Rows of the table, and lines that say what failed."""
    whole, reason = measured(args, name)
    if reason:
        return [], [reason]
    alone = measured(args, name, "-r", "1", "--profile")[0] if args.backend == "cuda" else {}
    rows, failures = [], []
    for (entry, case), values in whole.items():
        if isinstance(values, str):
            if "no-such-file" not in values:
                failures.append(f"{entry} {case}: {values.strip()[:200]}")
            continue
        row = {"program": name, "entry": entry, "case": case, "us": statistics.median(values["runtimes"]),
               "runs": len(values["runtimes"])}
        profile = alone.get((entry, case), {})
        if isinstance(profile, dict) and profile.get("profiling"):
            row["kernels_us"], row["kernels"] = kernels_of(profile["profiling"])
        rows.append(row)
    return rows, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM")
    parser.add_argument("--aplc", type=pathlib.Path, default=ROOT / "build/bin/aplc")
    parser.add_argument("--backend", default="cuda", choices=["c", "cuda"])
    parser.add_argument("--jobs", type=int, default=8, help="programs that are compiled at a time")
    parser.add_argument("--seconds", type=float, default=40, help="for a run of one program")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_intermixed_args()
    args.aplc = args.aplc.resolve()
    names = args.programs or sorted(
        str(file.relative_to(args.tree)) for file in args.tree.rglob("*.fut")
        if not {"lib", "micro"} & set(file.relative_to(args.tree).parts[:-1]))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(lambda name: measured(args, name, "-r", "1"), names))
    device = platform.processor() or platform.machine()
    if args.backend == "cuda":
        device = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True,
                                text=True).stdout.strip()
    print(f"{'program':46}{'case':34}{'us':>11}{'kernels':>11}{'number':>8}")
    rows, failed = [], 0
    for name in names:
        of_program, failures = rows_of(args, name)
        rows += of_program
        failed += len(failures)
        for row in of_program:
            kernels = f"{row['kernels_us']:11.0f}{row['kernels']:8}" if "kernels" in row else ""
            case = row["case"] if row["entry"] == "main" else f"{row['entry']} {row['case']}"
            print(f"{name[:45]:46}{case[:33]:34}{row['us']:11.0f}{kernels}", flush=True)
        for line in failures:
            print(f"{name}: {line}", flush=True)
        if args.json:
            record = {"date": time.strftime("%Y-%m-%d"), "device": device, "backend": args.backend, "cases": rows}
            results_file.write(args.json, record)
    print(f"{len({row['program'] for row in rows})} programs, {len(rows)} cases measured, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
