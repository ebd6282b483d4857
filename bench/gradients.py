#!/usr/bin/env python3
"""Gradients by vjp beside the adjoint written by hand, on one thread of this machine.

    bench/gradients.py APLC [--runs 15] [--only NAME,...] [--json FILE]

The entries of bench/gradients.fut are one C library. The two entries of a pair run in turns, and times are the least of
all runs, in milliseconds of processor time, since other work may be on the machine. A pair is right if no element of the
two results differs by more than 1e-3 of the largest one: sums are added in different orders. Exit status 0 only if every
pair is.
"""
import argparse
import array
import ctypes
import datetime
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
import time

import results_file

PROGRAM = pathlib.Path(__file__).with_suffix(".fut")
MOST_DIFFERENCE = 1e-3


class Case:
    """A pair of entries: its name, what it is, the shapes of arguments and results, and what arguments are drawn from."""

    def __init__(self, name, what, arguments, results, draw=None):
        self.name, self.what, self.arguments, self.results = name, what, arguments, results
        self.draw = draw or {}


def normal(count, _shape):
    return array.array("f", (random.gauss(0, 0.1) for _ in range(count)))


def signs(count, _shape):
    return array.array("f", (random.choice((-1, 1)) for _ in range(count)))


def one_of_each_row(count, shape):
    rows = array.array("f", bytes(4 * count))
    for row in range(shape[0]):
        rows[row * shape[1] + random.randrange(shape[1])] = 1
    return rows


W = 512
CASES = [
    Case("product", "a product of 512 by 512", [(W, W)] * 3, [(W, W)]),
    Case("layers", "two layers 512 wide, squared error", [(W, W), (W, W), (W,), (W, W), (W,), (W, W)],
         [(W, W), (W,), (W, W), (W,)]),
    Case("logistic", "logistic regression, 10,000 x 200", [(10000, 200), (10000,), (200,)], [(200,)], {1: signs}),
    Case("entropy", "cross entropy, 512 x 256 x 64", [(512, 256), (256, 64), (512, 64)], [(256, 64)],
         {2: one_of_each_row}),
    Case("attention", "attention, 512 queries and keys of 64", [(512, 64)] * 4, [(512, 64)] * 3),
    Case("kmeans", "k-means, 5,000 points of 32, 50 centres", [(5000, 32), (50, 32)], [(50, 32)]),
]


class Library:
    """The program as a C library."""

    def __init__(self, aplc, folder):
        subprocess.run([aplc, "c", "--library", "-o", str(folder / "gradients"), str(PROGRAM)], check=True)
        subprocess.run(["cc", "-O3", "-march=native", "-fopenmp", "-fwrapv", "-fPIC", "-shared", "-o",
                        str(folder / "gradients.so"), str(folder / "gradients.c"), "-lm", "-ldl", "-lpthread"],
                       check=True)
        self.code = ctypes.CDLL(str(folder / "gradients.so"))
        for name in ("futhark_context_config_new", "futhark_context_new", "futhark_context_get_error"):
            getattr(self.code, name).restype = ctypes.c_void_p
        config = ctypes.c_void_p(self.code.futhark_context_config_new())
        self.context = ctypes.c_void_p(self.code.futhark_context_new(config))

    def check(self, code):
        if code != 0:
            raise RuntimeError(ctypes.string_at(self.code.futhark_context_get_error(self.context)).decode())

    def array(self, values, shape):
        make = getattr(self.code, f"futhark_new_f32_{len(shape)}d")
        make.restype = ctypes.c_void_p
        return ctypes.c_void_p(make(self.context, ctypes.c_void_p(values.buffer_info()[0]),
                                    *[ctypes.c_int64(n) for n in shape]))

    def call(self, entry, arguments, results):
        """The arrays, and the time that the call took, in milliseconds. Several results are parts of a tuple."""
        made = ctypes.c_void_p()
        start = time.process_time()
        self.check(getattr(self.code, f"futhark_entry_{entry}")(self.context, ctypes.byref(made), *arguments))
        self.check(self.code.futhark_context_sync(self.context))
        milliseconds = (time.process_time() - start) * 1e3
        if len(results) == 1:
            return [made], milliseconds
        kind = "_".join([f"opaque_tup{len(results)}"] + [f"arr{len(shape)}d_f32" for shape in results])
        parts = [ctypes.c_void_p() for _ in results]
        for k, part in enumerate(parts):
            self.check(getattr(self.code, f"futhark_project_{kind}_{k}")(self.context, ctypes.byref(part), made))
        self.check(getattr(self.code, f"futhark_free_{kind}")(self.context, made))
        return parts, milliseconds

    def free(self, arrays, shapes):
        for each, shape in zip(arrays, shapes):
            getattr(self.code, f"futhark_free_f32_{len(shape)}d")(self.context, each)

    def values(self, arrays, shapes):
        read = []
        for each, shape in zip(arrays, shapes):
            count = 1
            for n in shape:
                count *= n
            values = array.array("f", bytes(4 * count))
            self.check(getattr(self.code, f"futhark_values_f32_{len(shape)}d")(
                self.context, each, ctypes.c_void_p(values.buffer_info()[0])))
            self.check(self.code.futhark_context_sync(self.context))
            read.append(values)
        return read


def difference(one, other):
    """The largest difference of two results' elements, beside the largest element of an array."""
    return max(max(abs(x - y) for x, y in zip(a, b)) / max(max(map(abs, b)), 1e-30) for a, b in zip(one, other))


def measure(library, case, runs):
    random.seed(7)
    arguments = []
    for k, shape in enumerate(case.arguments):
        count = 1
        for n in shape:
            count *= n
        arguments.append(library.array(case.draw.get(k, normal)(count, shape), shape))
    times, values = {"vjp": [], "hand": []}, {}
    for run in range(runs + 1):  # the first warms up
        for form in times:
            made, milliseconds = library.call(f"{form}_{case.name}", arguments, case.results)
            if run == 0:
                values[form] = library.values(made, case.results)
            else:
                times[form].append(milliseconds)
            library.free(made, case.results)
    library.free(arguments, case.arguments)
    off = difference(values["vjp"], values["hand"])
    vjp, hand = min(times["vjp"]), min(times["hand"])
    return {"name": case.name, "what": case.what, "vjp_ms": vjp, "hand_ms": hand, "vjp_over_hand": vjp / hand,
            "difference": off, "right": off < MOST_DIFFERENCE}


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("aplc")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    wanted = options.only.split(",") if options.only else [case.name for case in CASES]
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        library = Library(os.path.abspath(options.aplc), pathlib.Path(folder))
        cases = []
        for case in CASES:
            if case.name not in wanted:
                continue
            cases.append(measure(library, case, options.runs))
            row = cases[-1]
            print(f"{row['name']:10} vjp {row['vjp_ms']:8.2f} ms  by hand {row['hand_ms']:8.2f} ms  "
                  f"ratio {row['vjp_over_hand']:6.2f}  {'right' if row['right'] else 'WRONG'} {row['difference']:.1e}",
                  flush=True)
    if options.json:
        results_file.write(options.json, {
            "what": "gradients by vjp beside the adjoint by hand, bench/gradients.py", "date": str(datetime.date.today()),
            "machine": processor(), "threads": 1, "runs": options.runs, "load": [load, os.getloadavg()[0]],
            "cases": cases})
    sys.exit(0 if all(case["right"] for case in cases) else 1)


if __name__ == "__main__":
    main()
