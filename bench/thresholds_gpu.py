#!/usr/bin/env python3
"""Versions of programs that thresholds choose between, on this machine's NVIDIA GPU: each forced, for sizes on both sides.

    bench/thresholds_gpu.py APLC [--seconds 0.05] [--json FILE]

A threshold is a tuning parameter: the default stands beside one that is never reached and one that always is. Times are
microseconds a call, the median of five batches of calls on device memory. `lost`: what the default takes beyond the faster
version. Results of both versions are compared. Exit status 0 only if they agree.
"""
import argparse
import pathlib
import sys
import tempfile
import time

import torch

import results_file
from gpu_library import Library, build, milliseconds

PROGRAM = pathlib.Path(__file__).with_suffix(".fut")
F32, I32 = torch.float32, torch.int32
NEVER = 1 << 40


def uniform(*shape):
    return torch.rand(shape, device="cuda", generator=generator)


def heads(h, n, d):
    return [uniform(h, n, d) for _ in range(3)]


def points(n, m, d):
    return [uniform(n, d), uniform(m, d)]


# Entry, types and ranks of results, the threshold, its values that choose the version for few and for many, sizes.
# `together.rows` is the longest row of the version for short ones, the others are the least number.
CASES = [
    ("attention", [(F32, 3)], "attention.attention.from", NEVER, 1, heads,
     [(1, 1024, 64), (1, 4096, 64), (16, 2048, 64), (64, 2048, 64)]),
    ("softmax", [(F32, 2)], "softmax.together.rows", 4096, 1, lambda n, m: [uniform(n, m)],
     [(65536, 64), (16384, 1024), (4096, 4096), (1024, 16384)]),
    ("counts", [(I32, 1)], "counts.hist.from", NEVER, 1,
     lambda n: [torch.randint(0, 256, (n,), device="cuda", dtype=I32, generator=generator)],
     [(500,), (1500,), (20000,), (1 << 24,)]),
    ("nearest", [(F32, 1)], "nearest.pairs.from", NEVER, 1, points,
     [(256, 65536, 16), (2048, 8192, 16), (32768, 1024, 16), (1 << 20, 64, 16)]),
]


def timed(folder, entry, results, version, tensors, seconds):
    library = Library(entry, results, folder, version)
    given = library.arguments(tensors)
    slots = library.call(given)
    values = library.values(slots)[0]
    library.release(slots)
    return 1e3 * milliseconds(lambda: library.release(library.call(given)), seconds), values


def main():
    global generator
    parser = argparse.ArgumentParser()
    parser.add_argument("aplc")
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--json")
    options = parser.parse_args()
    generator = torch.Generator(device="cuda")
    generator.manual_seed(1)
    rows, wrong = [], 0
    print(torch.cuda.get_device_name())
    print(f"{'threshold':26}{'sizes':>20}{'for few':>10}{'for many':>10}{'default':>10}{'lost':>7}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        text = PROGRAM.read_text()
        build(options.aplc, text, folder, "default")
        build(options.aplc, text, folder, "few", [f"{threshold}={few}" for _, _, threshold, few, _, _, _ in CASES])
        build(options.aplc, text, folder, "many", [f"{threshold}={many}" for _, _, threshold, _, many, _, _ in CASES])
        for entry, results, threshold, _, _, make, all_sizes in CASES:
            for sizes in all_sizes:
                tensors = make(*sizes)
                us, values = zip(*(timed(folder, entry, results, version, tensors, options.seconds)
                                   for version in ("few", "many", "default")))
                scale = float(values[0].double().abs().max())
                right = all(float((v.double() - values[0].double()).abs().max()) <= 1e-5 * scale for v in values[1:])
                wrong += not right
                lost = us[2] / min(us[:2]) - 1
                rows.append({"threshold": threshold, "sizes": sizes, "few_us": us[0], "many_us": us[1], "default_us": us[2],
                             "right": right})
                print(f"{threshold:26}{' x '.join(map(str, sizes)):>20}{us[0]:10.1f}{us[1]:10.1f}{us[2]:10.1f}"
                      f"{100 * lost:6.0f}%{'' if right else '  WRONG'}", flush=True)
    if options.json:
        record = {"date": time.strftime("%Y-%m-%d"), "device": torch.cuda.get_device_name(), "cases": rows}
        results_file.write(options.json, record)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
