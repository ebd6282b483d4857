#!/usr/bin/env python3
"""Passes of shared memory as Nsight Compute counts them, beside those that the model predicts.

  bench/ncu.py BIN/apl_bench [--json FILE]

Tiles of operands that run along the depth are transposed when they are copied: with and without the swizzle. Where the
counters cannot be read the table says so, and that is no failure.
"""
import argparse
import csv
import io
import shutil
import subprocess
import sys

import results_file

METRICS = {  # what is wanted: names that it has had
    "reads": ["smsp__sass_inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_shared_ld.sum"],
    "read passes": ["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
                    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"],
    "read conflicts": ["smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
                       "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"],
    "copies": ["smsp__sass_inst_executed_op_ldgsts.sum", "smsp__inst_executed_op_ldgsts.sum"],
    "copy passes": ["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"],
    "copy conflicts": ["smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"],
    "stores": ["smsp__sass_inst_executed_op_shared_st.sum", "smsp__inst_executed_op_shared_st.sum"],
    "store passes": ["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
                     "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"],
}
FORMS = [("swizzle", {}), ("no swizzle", {"swizzle": 1}), ("copies by registers", {"copy": 1}),
         ("no swizzle, by registers", {"swizzle": 1, "copy": 1})]
CASES = ["mm0", "mm3"]  # both operands run along the depth; neither does


def predicted(swizzled, rows=128):
    """Passes of a warp that puts 8 steps of the depth of 4 rows into a tile: the most words in one bank."""
    banks = {}
    for lane in range(32):
        q, m = lane % 8, lane // 8
        word = q * rows + ((m ^ ((q & 3) * 8 ^ (q & 4))) if swizzled else m)
        banks.setdefault(word % 32, set()).add(word)
    return max(len(words) for words in banks.values())


def known_metrics(ncu):
    listed = subprocess.run([ncu, "--query-metrics", "--query-metrics-mode", "all"], capture_output=True, text=True)
    if listed.returncode != 0:
        listed = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True)
    return listed.stdout


def counted(ncu, bench, case, numbers, names):
    command = [ncu, "--clock-control", "none", "--cache-control", "none", "--launch-count", "1", "--csv",
               "--metrics", ",".join(names.values()), bench, "--backend=cuda", "--small", "--runs=1", f"--case={case}"]
    command += [f"--param={case}.{name}={value}" for name, value in numbers.items()]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return None, "ncu took more than a minute"
    lines = run.stdout.splitlines()
    first = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        said = [line for line in lines + run.stderr.splitlines() if "==ERROR==" in line or "==WARNING==" in line]
        return None, said[0] if said else f"ncu ended with {run.returncode} and no table"
    counts = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[first:]))):
        for what, name in names.items():
            if row.get("Metric Name") == name:
                try:
                    counts[what] = float(row["Metric Value"].replace(",", ""))
                except ValueError:  # "n/a": a counter that this device or driver does not give
                    continue
    return (counts, None) if counts else (None, "every counter is n/a")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench")
    parser.add_argument("--json")
    options = parser.parse_args()
    table = {"predicted copy passes": {"swizzle": predicted(True), "no swizzle": predicted(False)}, "counted": {}}
    ncu = shutil.which("ncu")
    reason = None if ncu else "ncu is not installed"
    names = {}
    if ncu:
        known = known_metrics(ncu)
        for what, candidates in METRICS.items():
            found = [name for name in candidates if name in known or name.rsplit(".", 1)[0] in known]
            names[what] = (found or candidates)[0]
            if known and not found:
                del names[what]
    print(f"{'case':<6} {'form':<26} {'predicted':>10} {'copies':>10} {'stores':>10} {'reads':>10}   passes each")
    for case in CASES:
        for form, numbers in FORMS:
            counts = None
            if reason is None:
                counts, reason = counted(ncu, options.bench, case, numbers, names)
            if counts is None:
                break
            table["counted"][f"{case}, {form}"] = counts

            def each(what):
                number = counts.get("copies" if what == "copy" else what + "s", 0)
                return f"{counts.get(what + ' passes', 0) / number:.2f}" if number else "-"

            said = predicted("swizzle" not in numbers) if case == "mm0" else "-"
            print(f"{case:<6} {form:<26} {said:>10} {each('copy'):>10} {each('store'):>10} {each('read'):>10}")
            sys.stdout.flush()
        if reason:
            break
    if reason:
        table["not counted"] = reason
        print(f"predicted passes of a copy: {predicted(True)} with the swizzle, {predicted(False)} without; "
              f"not counted: {reason}")
    if options.json:
        results_file.write(options.json, table)


if __name__ == "__main__":
    main()
