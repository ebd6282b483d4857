#!/usr/bin/env python3
"""Fits what machine/target/records/h200.txt says of elements of 4 bytes, in SpMM, to a sweep, and evaluates the fit by another.

    apl_sparse_gpu --type=f32 --operators=spmm --sweep --plans --matrices=... --json=FIT     # OTHERS: of other matrices
    bench/sparse_gpu/fit_wide.py FIT OTHERS        # wants numpy and scipy

sparse_rows_wide: by how much the model for f16 overestimates gathered rows when it counts bytes (geometric mean).
sparse_plain_step_8, _step_16, _bytes, _gigafma and _task: windows without matrix units, least squares of the logarithms
of times. What rows beside them cost (sparse_plain_fused_8 and _16) is the median of what plans of both took over their
parts. Formulas are those of runtime/sparse/device_cost.c; `aplc sparse calibrate --device cuda` fits them to kernels
that it runs.
"""
import math
import pathlib
import re
import sys

import numpy as np
from scipy.optimize import least_squares

from records import cases_of

SIZE = 4
RECORD = pathlib.Path(__file__).parents[2] / "machine/target/records/h200.txt"
WINDOWS = re.compile(r"windows of (\d+) split (\d+) slices 1$")
ROWS = re.compile(r"rows \d+/\d+(?: sorted)? lanes (\d+)( ahead)?$")


def rounds(length, each):
    return -(-length // each)


def numbers():
    found = {}
    for line in RECORD.read_text(encoding="utf-8").splitlines():
        words = line.split("#")[0].split("=")
        if len(words) == 2:
            found[words[0].strip()] = words[1].strip()
    return found


def rows_time(d, match, f, width):
    """As apl_sparse_rows_cost, without sparse_rows_wide, with the launch."""
    lanes, ahead = int(match[1]), match[2] is not None
    groups, row_bytes = 32 // lanes, SIZE * width
    slices = rounds(width, lanes * (16 // SIZE))
    far = (f["rows"] + f["columns"]) * row_bytes > d("sparse_cache_bytes")
    longest = max(rounds(f["longest"][0], 32 * groups), rounds(f["longest"][1], 4 * groups), rounds(f["longest"][2], 4))
    shorts = f["records"] - f["longs"] - f["mediums"]
    warps = (d("sparse_rows_medium") * f["mediums"] + d("sparse_rows_long") * f["longs"]
             + d("sparse_rows_short") * rounds(shorts, groups))
    issued = d("sparse_rows_issue") * f["row_elements"] / (4 * groups)
    gathered = row_bytes * f["row_elements"] * 1e-6 * d("sparse_rows_megabyte_far" if far else "sparse_rows_megabyte")
    if ahead:
        gathered *= d("sparse_rows_ahead")
    if f["sorted"] and f["shared"] > 1.05:
        gathered *= d("sparse_rows_shared")
    latency = d("sparse_rows_round_ahead" if ahead else "sparse_rows_round") * longest
    return math.hypot(latency, gathered + (issued + warps) * slices * 1e-3)


def window_features(d, match, f, width):
    split, parts = int(match[2]), f["parts"]
    far = (f["rows"] + f["columns"]) * SIZE * width > d("sparse_cache_bytes")
    slices = rounds(width, 32 * min(4, max(1, width // 32)))
    is_high = parts > 1
    units = f.get("units", f["steps"] * parts)
    megabyte = d("sparse_windows_megabyte_far" if far else "sparse_windows_megabyte")
    return [rounds(f["longest_window"], split), 1e-6 * SIZE * width * f["steps"] * 16 * megabyte,
            1e-9 * 128 * units * width * is_high, parts * f["windows"] * slices * split * 1e-3, is_high]


def windows_time(launch, p, x):
    return launch + np.hypot(np.where(x[4], p[1], p[0]) * x[0], p[2] * x[1] + p[3] * x[2] + p[4] * x[3])


def gather(d, file):
    over, x, times = [], [], []
    for case in cases_of([file]):
        for one in case.get("sweep") or []:
            f = one["form"]
            for name, time in one["us"].items():
                if (match := ROWS.match(name)) and f["cuts"] == 0:
                    over.append(rows_time(d, match, f, case["width"]) / max(time - d("sparse_launch"), 0.2))
                if (match := WINDOWS.match(name)) and f["records"] == 0:
                    x.append(window_features(d, match, f, case["width"]))
                    times.append(time)
    return np.log(np.array(over)), np.array(x, float).T, np.array(times)


def main():
    text = numbers()

    def d(key):
        return float(text[key])

    over, x, times = gather(d, sys.argv[1])
    wide = math.exp(-over.mean())

    def errors(logs):
        return np.log(windows_time(d("sparse_launch"), np.exp(logs), x) / times)

    p = np.exp(least_squares(errors, np.log([1.9, 2.4, 1.4, 60, 1]), loss="soft_l1", f_scale=0.15).x)
    names = ("step_8", "step_16", "bytes", "gigafma", "task")
    print(f"sparse_rows_wide = {wide:.3g}", *(f"sparse_plain_{n} = {v:.3g}" for n, v in zip(names, p)), sep="\n")
    for title, file in (("fitted", sys.argv[1]), ("others", sys.argv[2])):
        over, x, times = gather(d, file)
        off = np.log(windows_time(d("sparse_launch"), p, x) / times)
        print(f"{title}: rows {np.sqrt(((over + math.log(wide)) ** 2).mean()):.3f}, "
              f"windows {np.sqrt((off ** 2).mean()):.3f} error in root mean square")


if __name__ == "__main__":
    main()
