#!/usr/bin/env python3
"""Fits SpMM's numbers of runtime/sparse/device_cost.c to a sweep, and says how well they choose.

    apl_sparse_gpu --operators=spmm --sweep --no-peers --json=SWEEP
    bench/sparse_gpu/fit_spmm.py SWEEP            # wants numpy and scipy

Least squares of the logarithms of times; kernels that are near the best of their case count three times as much as the
others, since between them is chosen. Prints the numbers, and how many times as long as the best kernel that one takes
which the numbers choose, for all cases, and for matrices that are left out of the fit.
"""
import math
import re
import sys

import numpy as np
from scipy.optimize import least_squares

from records import cases_of

CACHE_BYTES = 40e6
PROCESSORS = 132
STAGED_BYTES = 100 * 1024


def rounds(length, each):
    return -(-length // each)


def is_large(f, width):
    return (f["rows"] + f["columns"]) * 2 * width > CACHE_BYTES


class Rows:
    """Gathered rows: a group of lanes, a warp or a block for each."""
    start = [.47, .8, .1, .05, .8, .8, .12, .15, .15, .1, 1.75]
    name = re.compile(r"rows \d+/\d+(?: sorted)? lanes (\d+)( ahead)?$")

    @staticmethod
    def features(match, f, width):
        lanes, ahead = int(match[1]), match[2] is not None
        groups = 32 // lanes
        slices = rounds(width, lanes * 8)
        shorts = f["records"] - f["longs"] - f["mediums"]
        longest = max(rounds(f["longest"][0], 32 * groups), rounds(f["longest"][1], 4 * groups),
                      rounds(f["longest"][2], 4))
        return [longest, 2e-6 * width * f["row_elements"], 1e-3 * slices * f["row_elements"] / 4 / groups,
                1e-3 * slices * f["mediums"], 8e-3 * slices * f["longs"], 1e-3 * slices * rounds(shorts, groups),
                is_large(f, width), ahead, f["sorted"] and f["shared"] > 1.05]

    @staticmethod
    def time(p, x):
        latency = p[0] * x[0] * np.where(x[7] > 0, p[1], 1)
        gathers = x[1] * np.where(x[6] > 0, p[2], p[3]) * np.where(x[7] > 0, p[4], 1) * np.where(x[8] > 0, p[5], 1)
        return p[10] + np.hypot(latency, gathers + x[2] * p[6] + x[3] * p[7] + x[4] * p[8] + x[5] * p[9])

    @staticmethod
    def is_offered(match, f, width):
        """As choose_rows and may_stay offer them."""
        lanes = int(match[1])
        most = min(16, 1 << (rounds(width, 8) - 1).bit_length())
        stays = f["mean"] >= 24 or (f["shared"] >= 1.1 and width >= 128)
        fewest = 4 if f["rows"] < 5000 else 8 if most == 16 else most
        return (f["sorted"] or stays) and min(fewest, most) <= lanes <= most


class Windows:
    """Windows of 8, 16 or 32 rows on tensor cores."""
    start = [.5, .33, .35, .8, .17, .2, .15, .64, 1, 2.7, 1.9, .9, 1, 1]
    name = re.compile(r"windows of (\d+) split (\d+) slices 1( resident 4)?$")

    @staticmethod
    def features(match, f, width):
        parts, split = f["parts"], int(match[2])
        slices = rounds(width, 32 if width <= 32 else 64)
        return [rounds(f["longest_window"], split * (2 if parts == 1 else 1)), 32e-6 * width * f["steps"],
                1e-3 * f["windows"] * slices * split, math.log2(split) * parts, parts, is_large(f, width),
                width <= 32, match[3] is not None]

    @staticmethod
    def time(p, x):
        def by_parts(one, two, four):
            return np.where(x[4] == 1, one, np.where(x[4] == 2, two, four))
        latency = x[0] * by_parts(p[0], p[1], p[2]) * np.where(x[6] > 0, p[3], 1) + x[3] * p[4]
        gathers = x[1] * np.where(x[5] > 0, p[5], p[6]) * np.where(x[7] > 0, p[11], 1) * by_parts(1, p[12], p[13])
        return p[10] + np.hypot(latency, gathers + x[2] * by_parts(p[7], p[8], p[9]))

    @staticmethod
    def is_offered(_match, _f, _width):
        return True


class Staged:
    """B through shared memory."""
    start = [.2, 30, 9, 1.5]
    name = re.compile(r"staged$")

    @staticmethod
    def features(_match, f, width):
        lanes = 4
        while lanes > 2 and f["columns"] * lanes * 16 > STAGED_BYTES:
            lanes //= 2
        groups, slices = 32 // lanes, rounds(width, lanes * 8)
        blocks = min(max(1, PROCESSORS // slices), f["records"])
        longest = max(rounds(f["records"], blocks * 32) * rounds(rounds(f["row_elements"], f["records"]), 4 * groups),
                      rounds(max(f["longest"]), 4 * groups))
        return [rounds(blocks * slices, PROCESSORS), longest, 16e-6 * f["columns"] * lanes,
                16e-6 * f["row_elements"] / blocks * lanes]

    @staticmethod
    def time(p, x):
        return p[3] + x[0] * (p[0] * x[1] + p[1] * x[2] + p[2] * x[3])

    @staticmethod
    def is_offered(_match, f, _width):
        return f["columns"] * 2 * 16 <= STAGED_BYTES


class Samples:
    """What one model is fitted to."""

    def __init__(self, model, cases):
        self.model, self.rows, self.times, self.near, self.offered, self.case = model, [], [], [], [], []
        for number, case in enumerate(cases):
            for one in case["sweep"]:
                for name, time in one["us"].items():
                    match = model.name.match(name)
                    if not match:
                        continue
                    self.rows.append(model.features(match, one["form"], case["width"]))
                    self.times.append(time)
                    self.near.append(3.0 if time < 1.3 * case["best_us"] else 1.0)
                    self.offered.append(model.is_offered(match, one["form"], case["width"]))
                    self.case.append(number)
        self.x = np.array(self.rows, float).T
        self.times, self.near, self.case = np.array(self.times), np.array(self.near), np.array(self.case)

    def fit(self, kept, start):
        def errors(logs):
            return (self.near * np.log(self.model.time(np.exp(logs), self.x) / self.times))[kept[self.case]]
        return np.exp(least_squares(errors, np.log(start), loss="soft_l1", f_scale=0.15, max_nfev=600).x)


def choose(samples, numbers, cases, kept):
    """Of each kept case the time of the kernel that the numbers choose."""
    best = {}
    for each, p in zip(samples, numbers):
        for guess, time, offered, case in zip(each.model.time(p, each.x), each.times, each.offered, each.case):
            if offered and kept[case] and (case not in best or guess < best[case][0]):
                best[case] = (guess, time)
    return {case: time / cases[case]["best_us"] for case, (_, time) in best.items()}


def summary(title, found, cases):
    mean = math.exp(sum(map(math.log, found.values())) / len(found))
    worst = max(found, key=found.get)
    rules = math.exp(sum(math.log(cases[c]["us"] / cases[c]["best_us"]) for c in found) / len(found))
    print(f"{title}: {mean:.3f} times the best kernel, at worst {found[worst]:.2f} ({cases[worst]['matrix']} "
          f"{cases[worst]['width']}); what ran: {rules:.3f}")


def main():
    cases = cases_of(sys.argv[1:2], lambda case: case.get("sweep"))
    samples = [Samples(model, cases) for model in (Rows, Windows, Staged)]
    everything = np.ones(len(cases), bool)
    numbers = [each.fit(everything, each.model.start) for each in samples]
    for each, p in zip(samples, numbers):
        error = np.log(each.model.time(p, each.x) / each.times).std()
        print(f"{each.model.__name__:8}", " ".join(f"{v:.4g}" for v in p), f"error {error:.3f}")
    summary("all", choose(samples, numbers, cases, everything), cases)
    found = {}
    for matrix in sorted({c["matrix"] for c in cases}):
        here = np.array([c["matrix"] == matrix for c in cases])
        without = [each.fit(~here, p) for each, p in zip(samples, numbers)]
        found.update(choose(samples, without, cases, here))
    summary("left out of the fit", found, cases)


if __name__ == "__main__":
    main()
