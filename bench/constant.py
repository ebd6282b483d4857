#!/usr/bin/env python3
"""Products with constant matrices (docs/constant.md): tiles ranked by their proxies, the chosen tile's code, the kernels of
any sparse operand and the dense product, of uniform random matrices, beside scipy and Eigen.

    python3 bench/constant.py APLC [--backend=c] [--matrices=768x768_s95,...] [--widths=1,16,128] [--exhaustive]
        [--tile=ROWS,COLUMNS,PIECES] [--least] [--seconds=150] [--log=FOLDER] [--json=FILE] [--eigen=/usr/include/eigen3]

First results of a small matrix are compared with those of the interpreter. What does not end in --seconds is left out, and
said; times that were measured until then are in the folder --log, from which the next run goes on. scipy, where it is
there, and Eigen, where its headers are, multiply the same matrices in the same run: scipy with its one thread, Eigen with
one and with all, of which the best counts. Times are medians, in microseconds; with --least the shortest of ten times as
many calls, on machines that others use, too.
"""
import argparse
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time

import results_file

PROGRAM = """#[sparse(A)] #[constant(A)]
entry spmm [n][m][b] (A: [n][m]f32) (B: [m][b]f32): [n][b]f32 =
  map (\\row -> map (\\col -> f32.sum (map2 (*) row col)) (transpose B)) A
"""


def make_matrix(name, folder):
    rows, columns, sparsity = (int(x) for x in re.fullmatch(r"(\d+)x(\d+)_s(\d+)", name).groups())
    draw = random.Random(name)
    count = rows * columns * (100 - sparsity) // 100
    places = sorted(draw.sample(range(rows * columns), count))
    entries = [(p // columns, p % columns, draw.randint(-999, 999) / 512 or 1.0) for p in places]
    path = folder / f"{name}.mtx"
    with path.open("w") as out:
        out.write(f"%%MatrixMarket matrix coordinate real general\n{rows} {columns} {count}\n")
        out.writelines(f"{i + 1} {j + 1} {x}\n" for i, j, x in entries)
    return path, rows, columns, entries


def make_dense(rows, width, path):
    draw = random.Random(width)
    numbers = [draw.randint(-512, 512) / 256 for _ in range(rows * width)]
    path.write_bytes(b"b\x02\x02 f32" + struct.pack("<qq", rows, width) + struct.pack(f"<{len(numbers)}f", *numbers))


def numbers_of(data):
    (rows, columns) = struct.unpack("<qq", data[7:23])
    return struct.unpack(f"<{rows * columns}f", data[23 : 23 + 4 * rows * columns])


def check(aplc, program, backend, folder):
    """The largest difference from the interpreter, relative to the largest number; raises where a command fails."""
    matrix, _, columns, _ = make_matrix("60x50_s80", folder)
    make_dense(columns, 37, folder / "check.bin")
    results = []
    for name in ("interp", backend):
        command = [aplc, "run", "-b", "--backend", name, program, f"A=@{matrix}", f"B=@{folder / 'check.bin'}"]
        results.append(numbers_of(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout))
    return max(abs(x - y) for x, y in zip(*results)) / max(abs(x) for x in results[0])


def time_scipy(entries, rows, columns, width, least):
    try:
        import numpy
        import scipy.sparse
    except ImportError:
        return None
    i, j, x = zip(*entries)
    matrix = scipy.sparse.csr_matrix((numpy.array(x, "float32"), (i, j)), shape=(rows, columns))
    dense = numpy.ones((columns, width), "float32")
    times = []
    for _ in range(500 if least else 50):
        start = time.perf_counter()
        matrix @ dense
        times.append(1e6 * (time.perf_counter() - start))
    return min(times) if least else sorted(times)[25]


def build_eigen(headers, folder):
    """The program that times Eigen, or None where it cannot be made."""
    program = folder / "constant_eigen"
    source = pathlib.Path(__file__).with_name("constant_eigen.cpp")
    command = ["c++", "-std=c++17", "-O3", "-march=native", "-fopenmp", "-DNDEBUG", f"-I{headers}", source, "-o", program]
    try:
        done = subprocess.run(command, capture_output=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return program if done.returncode == 0 else None


def time_eigen(program, matrix, width, least):
    if program is None:
        return None
    times = []
    for threads in {1, int(os.environ.get("OMP_NUM_THREADS", os.cpu_count()))}:
        done = subprocess.run([program, matrix, str(width), str(threads), *(["least"] if least else [])], capture_output=True, text=True, timeout=120)
        times += [float(done.stdout)] if done.returncode == 0 else []
    return min(times, default=None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("aplc")
    parser.add_argument("--backend", default="c")
    parser.add_argument("--matrices", default="768x768_s95,768x768_s90")
    parser.add_argument("--widths", default="1,16,128")
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--tile", default="", help="this tile alone; N1 is 1 for products narrower than a vector of a CPU")
    parser.add_argument("--least", action="store_true")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--log", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--eigen", default="/usr/include/eigen3")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        log = pathlib.Path(options.log or temporary)
        log.mkdir(parents=True, exist_ok=True)
        program = folder / "spmm.fut"
        program.write_text(PROGRAM)
        error = check(options.aplc, program, options.backend, folder)
        print(f"a small matrix differs from the interpreter by {error:.1e}", flush=True)
        eigen = build_eigen(options.eigen, folder)
        cases = []
        for name in options.matrices.split(","):
            matrix, rows, columns, entries = make_matrix(name, folder)
            for width in (int(x) for x in options.widths.split(",")):
                make_dense(columns, width, folder / "b.bin")
                command = [options.aplc, "sections", program, f"A=@{matrix}", f"B=@{folder / 'b.bin'}"]
                command += ["--backend", options.backend, "--log", log / f"{name}_{width}_{options.backend}.log"]
                command += ["--json", folder / "found.json"] + (["--exhaustive"] if options.exhaustive else [])
                command += ["--least", "--runs", "300"] if options.least else []
                if options.tile:
                    narrow = options.backend == "c" and width < 16
                    command += ["--tile", re.sub(r",\d+,", ",1,", options.tile) if narrow else options.tile]
                case = {"matrix": name, "nonzeros": len(entries), "width": width}
                try:
                    done = subprocess.run(command, capture_output=True, text=True, timeout=max(1, end - time.monotonic()))
                    case["exit"] = done.returncode
                    print(done.stdout if done.returncode == 0 else done.stderr, flush=True)
                    if done.returncode == 0:
                        case.update(json.loads((folder / "found.json").read_text()))
                except subprocess.TimeoutExpired:
                    case["exit"] = "out of time"
                case["scipy_us"] = time_scipy(entries, rows, columns, width, options.least)
                case["eigen_us"] = time_eigen(eigen, matrix, width, options.least)
                cases.append(case)
                print(f"{name}, {width} columns: exit {case['exit']}, scipy {case['scipy_us']}, Eigen {case['eigen_us']}", flush=True)
                if options.json:
                    result = {"backend": options.backend, "cores": os.cpu_count(), "threads": os.environ.get("OMP_NUM_THREADS", "all"), "times": "least" if options.least else "median", "error": error, "cases": cases}
                    results_file.write(options.json, result)
        print(f"{'matrix':16} {'J':>4} {'constant':>9} {'sparse':>9} {'dense':>9} {'scipy':>9} {'Eigen':>9}")
        for case in cases:
            times = [case.get(k + "_us") for k in ("constant", "sparse", "dense", "scipy", "eigen")]
            print(f"{case['matrix']:16} {case['width']:4} " + " ".join(f"{t:9.1f}" if t else f"{'-':>9}" for t in times))
    return 0 if error < 1e-5 and all(case["exit"] == 0 for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
