#!/usr/bin/env python3
"""Programs on the CPU next to the thread pools of NumPy and torch in the same process.

usage: pools.py LIBAPL.so [--programs product,loop,both] [--size 512] [--calls 200] [--json FILE]

Programs are a product, a loop (the exponentials of all elements), and both: a product, and the softmax of its rows.
Each row is a process of its own, in which the program is compiled after the libraries of the row have been imported and
have run a product of their own: `alone`, next to each pool, and next to both. Between two measured calls each library
multiplies once, as a program that uses them does. Rows of libraries that are not installed are left out. Times are
medians in milliseconds; the ratio is to `alone`.
"""
import argparse
import ctypes
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import time

import results_file

MULTIPLY = """def mm [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 =
  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A
"""
SOFTMAX = """def softmax [n] (xs: [n]f32) : [n]f32 =
  let most = f32.maximum xs
  let es = map (\\x -> f32.exp (x - most)) xs
  let sum = f32.sum es
  in map (/ sum) es
"""
# The source of each program, and what each element of its result is, where all elements of A are 1 and of B a half.
PROGRAMS = {
    "product": (MULTIPLY + "entry main [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 = mm A B", lambda n: n / 2),
    "loop": ("entry main [n][m] (A: [n][m]f32) (B: [n][m]f32) : [n][m]f32 = map2 (map2 (\\a b -> f32.exp (a - b))) A B",
             lambda n: math.exp(0.5)),
    "both": (MULTIPLY + SOFTMAX + "entry main [n][m][k] (A: [n][m]f32) (B: [m][k]f32) : [n][k]f32 = map softmax (mm A B)",
             lambda n: 1 / n),
}
F32 = 10  # APL_TYPE_F32


class Input(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("type", ctypes.c_int), ("rank", ctypes.c_size_t),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p), ("on_device", ctypes.c_int), ("matrix", ctypes.c_void_p)]


class Program:
    """One of PROGRAMS, through the C API of `library`."""

    def __init__(self, library, name, size):
        text, wanted = PROGRAMS[name]
        source, self.wanted = text.encode(), wanted(size)
        self.api = ctypes.CDLL(library)
        for name in ("apl_compiler_new", "apl_array_data"):
            getattr(self.api, name).restype = ctypes.c_void_p
        for name in ("apl_compiler_error_text", "apl_program_error_text"):
            getattr(self.api, name).restype = ctypes.c_char_p
        compiler = ctypes.c_void_p(self.api.apl_compiler_new())
        module, self.program = ctypes.c_void_p(), ctypes.c_void_p()
        if (self.api.apl_parse_source(compiler, b"main.fut", source, ctypes.c_size_t(len(source)), ctypes.byref(module))
                or self.api.apl_program_load(compiler, module, b"c", ctypes.byref(self.program))):
            sys.exit(self.api.apl_compiler_error_text(compiler).decode())
        count = size * size
        self.a, self.b = (ctypes.c_float * count)(*([1.0] * count)), (ctypes.c_float * count)(*([0.5] * count))
        shape = (ctypes.c_int64 * 2)(size, size)
        self.inputs = (Input * 2)(*[Input(ctypes.sizeof(Input), F32, 2, shape, ctypes.cast(x, ctypes.c_void_p), 0, None)
                                    for x in (self.a, self.b)])
        self.size = size

    def call(self):
        """Milliseconds of one call; the result is checked."""
        result, count = ctypes.c_void_p(), ctypes.c_size_t()
        start = time.perf_counter()
        fault = self.api.apl_program_call(self.program, b"main", self.inputs, ctypes.c_size_t(2), 1, ctypes.byref(result),
                                          ctypes.c_size_t(1), ctypes.byref(count))
        elapsed = time.perf_counter() - start
        if fault:
            sys.exit(self.api.apl_program_error_text(self.program).decode())
        data = ctypes.cast(self.api.apl_array_data(result), ctypes.POINTER(ctypes.c_float))
        if not math.isclose(data[self.size + 1], self.wanted, rel_tol=1e-5):
            sys.exit(f"wrong result: {data[self.size + 1]}")
        self.api.apl_array_free(result)
        return elapsed * 1e3


def pools(names, size):
    """A function for each library that multiplies once on its pool."""
    found = []
    if "numpy" in names:
        import numpy
        x = numpy.ones((size, size), numpy.float32)
        found.append(lambda: x @ x)
    if "torch" in names:
        import torch
        y = torch.ones(size, size)
        found.append(lambda: (y @ y, y + y))
    return found


def child(options):
    others = pools(options.child.split(","), options.size)
    for other in others:
        other()
    program = Program(options.library, options.programs, options.size)
    for _ in range(5):
        program.call()
    times = []
    for _ in range(options.calls):
        for other in others:
            other()
        times.append(program.call())
    print(json.dumps({"median_ms": statistics.median(times), "least_ms": min(times), "most_ms": max(times)}))


def rows_of(program, options):
    """Measures a program alone and next to each pool that is there."""
    rows = []
    for names in ("alone", "numpy", "torch", "numpy,torch"):
        missing = [name for name in names.split(",") if name != "alone" and importlib.util.find_spec(name) is None]
        if missing:
            print(f"{program:8} {names:12} left out: {' and '.join(missing)} not installed", flush=True)
            continue
        command = [sys.executable, __file__, options.library, "--size", str(options.size), "--calls", str(options.calls),
                   "--programs", program, "--child", names]
        row = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        rows.append({"program": program, "pools": names, **row,
                     "ratio": row["median_ms"] / rows[0]["median_ms"] if rows else 1})
        print(f"{program:8} {names:12} {row['median_ms']:9.3f} ms  least {row['least_ms']:.3f}  ratio {rows[-1]['ratio']:.2f}",
              flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--json")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    rows = []
    for program in options.programs.split(","):
        rows += rows_of(program, options)
    if options.json:
        results_file.write(options.json, {"size": options.size, "cores": os.cpu_count(), "rows": rows})


if __name__ == "__main__":
    main()
