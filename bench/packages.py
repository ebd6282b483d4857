#!/usr/bin/env python3
"""Times Futhark packages, read as they are, on this machine's cores, beside NumPy and SciPy.

    packages.py FOLDER... [--aplc FILE] [--threads 1,2] [--runs 3] [--scale 1.0] [--only NAME,...] [--check BACKEND]
                [--json FILE]

FOLDERs are searched for the packages sorts, segmented, linalg and sparse of diku-dk, as `futhark pkg` lays them out
(lib/github.com/diku-dk/NAME); nothing of them is in this repository. Every result is compared with that of NumPy or
SciPy before it is timed. Times are the least of several runs, in milliseconds, the peers' in this process with as many
threads as they take. With --check the programs only run, once and at small sizes, on that backend (c, emulate, interp).
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import tempfile
import time

import results_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["sorts", "segmented", "linalg", "sparse"]
PROGRAM = """
import "lib/github.com/diku-dk/sorts/radix_sort"
import "lib/github.com/diku-dk/sorts/merge_sort"
import "lib/github.com/diku-dk/segmented/segmented"
import "lib/github.com/diku-dk/linalg/lu"
import "lib/github.com/diku-dk/sparse/compressed"
module lu = mk_lu f64
module matrices = mk_compressed f64

entry radix_sort_keys [n] (keys: [n]i32) : [n]i32 = radix_sort_int i32.num_bits i32.get_bit keys
entry merge_sort_keys [n] (keys: [n]i32) : [n]i32 = merge_sort (i32.<=) keys
entry segmented_sums [n] (flags: [n]bool) (xs: [n]i64) : [n]i64 = segmented_scan (+) 0 flags xs
entry solve [n] (a: [n][n]f64) (b: [n]f64) : [n]f64 = lu.ols 16 a b
-- The matrix is made from its non-zeros once, and multiplied by a vector many times.
entry products [k] [n] (times: i64) (rows: [k]i64) (columns: [k]i64) (values: [k]f64) (x: [n]f64) : [n]f64 =
  let a = matrices.sr.sparse n n (zip3 rows columns values)
  in loop x for _i < times do matrices.sr.smvm a x
"""


def binary(value):
    """A value in Futhark's binary format."""
    import numpy
    value = numpy.asarray(value, order="C")
    kind = {"int32": "i32", "int64": "i64", "float64": "f64", "bool": "bool"}[value.dtype.name]
    head = b"b" + bytes([2, value.ndim]) + kind.encode().rjust(4)
    return head + struct.pack(f"<{value.ndim}q", *value.shape) + value.tobytes()


def make_cases(scale):
    """Of each entry: what is done, its arguments, its result, and the peer that it is measured with."""
    import numpy
    import scipy.linalg
    import scipy.sparse
    random = numpy.random.default_rng(1)
    n = max(1, int(10_000_000 * scale))
    keys = random.integers(-2**31, 2**31 - 1, n, dtype=numpy.int32)
    flags = random.random(n) < 0.01
    flags[0] = True
    numbers = random.integers(-1000, 1000, n, dtype=numpy.int64)

    def segmented_sums():
        sums = numpy.cumsum(numbers)
        starts = numpy.flatnonzero(flags)
        before = numpy.concatenate(([0], sums[starts[1:] - 1]))
        return sums - numpy.repeat(before, numpy.diff(numpy.append(starts, n)))

    order = max(20, int(1000 * scale))
    matrix = random.random((order, order)) + order * numpy.eye(order)
    right = random.random(order)
    size = max(50, int(100_000 * scale))
    times = 100
    # Ten non-zeros a row in random columns, each once, whose values add up to one.
    columns = (numpy.arange(size)[:, None] + random.integers(0, size // 10, (size, 10)) +
               numpy.arange(10) * (size // 10)) % size
    columns = numpy.sort(columns, axis=1)
    values = random.random((size, 10))
    values = (values / values.sum(axis=1)[:, None]).ravel()
    rows, columns = numpy.repeat(numpy.arange(size), 10), columns.ravel().astype(numpy.int64)
    vector = random.random(size)

    def products():
        a = scipy.sparse.coo_matrix((values, (rows, columns)), shape=(size, size)).tocsr()
        x = vector
        for _ in range(times):
            x = a @ x
        return x

    return {
        "radix_sort_keys": (f"radix sort of {n} keys (i32)", [keys], "np.sort", lambda: numpy.sort(keys)),
        "merge_sort_keys": (f"merge sort of {n} keys (i32)", [keys], "np.sort, stable",
                            lambda: numpy.sort(keys, kind="stable")),
        "segmented_sums": (f"segmented scan of {n} numbers (i64)", [flags, numbers], "np.cumsum and differences",
                           segmented_sums),
        "solve": (f"LU solve, {order} unknowns (f64)", [matrix, right], "scipy.linalg.solve",
                  lambda: scipy.linalg.solve(matrix, right)),
        "products": (f"{times} sparse products, {size} rows of 10 non-zeros (f64)",
                     [numpy.int64(times), rows, columns, values, vector], "scipy.sparse", products),
    }


def lay_out(folders, target):
    """Copies of the packages in one tree, as programs import them."""
    for name in PACKAGES:
        inside = pathlib.Path("lib/github.com/diku-dk") / name
        found = next((root / inside for folder in folders for root in (folder, *sorted(folder.rglob("*/")))
                      if (root / inside).is_dir()), None)
        if found is None:
            raise SystemExit(f"no package {name} in {', '.join(map(str, folders))}")
        shutil.copytree(found, target / inside)


def least(call, runs):
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1000


def bench(args, folder, entry, threads):
    """Milliseconds of the entry, the least of its runs."""
    records = folder / "times.json"
    command = [args.aplc, "bench", "-r", str(args.runs), "--no-convergence-phase", f"--json={records}",
               f"--spec-file={folder / 'spec'}", f"--pass-option=--num-threads={threads}", "--timeout=600",
               f"--entry-point={entry}", "packages.fut"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{entry} with {threads} threads: {done.stdout}")
    datasets = next(iter(json.loads(records.read_text()).values()))["datasets"]
    return min(next(iter(datasets.values()))["runtimes"]) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--aplc", default=str(ROOT / "build/bin/aplc"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1, help="of the sizes")
    parser.add_argument("--only", default="", help="parts of entries' names, separated by commas")
    parser.add_argument("--check", choices=["c", "emulate", "interp", "cuda"], help="only run, at small sizes")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    args.aplc = str(pathlib.Path(args.aplc).resolve())
    threads = [int(count) for count in args.threads.split(",")]
    load, rows = os.getloadavg()[0], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        lay_out(args.folders, folder)
        (folder / "packages.fut").write_text(PROGRAM)
        cases = {entry: case for entry, case in make_cases(0.0001 if args.check else args.scale).items()
                 if any(part in entry for part in args.only.split(","))}
        spec = ""
        for entry, (_, arguments, _, peer) in cases.items():
            (folder / f"{entry}.in").write_bytes(b"".join(map(binary, arguments)))
            (folder / f"{entry}.out").write_bytes(binary(peer()))
            spec += f"Packages.\n==\nentry: {entry}\ninput @ {entry}.in output @ {entry}.out\n\n"
        (folder / "spec").write_text(spec)
        if args.check:
            command = [args.aplc, "test", f"--backend={args.check}", f"--spec-file={folder / 'spec'}", "--timeout=600",
                       "packages.fut"]
            raise SystemExit(subprocess.run(command, cwd=folder).returncode)
        print(f"{'':58}" + "".join(f"{f'aplc {count}':>10}" for count in threads) + f"{'peer':>10}  ms")
        for entry, (what, _, peer_name, peer) in cases.items():
            ours = {count: bench(args, folder, entry, count) for count in threads}
            theirs = least(peer, args.runs)
            rows.append({"entry": entry, "what": what, "milliseconds": {str(k): v for k, v in ours.items()},
                         "peer": peer_name, "peer_milliseconds": theirs})
            print(f"{what:58}" + "".join(f"{ms:10.1f}" for ms in [*ours.values(), theirs]) + f"  {peer_name}", flush=True)
    if args.json:
        import numpy
        import scipy
        document = {"machine": f"{os.cpu_count()} processors, {platform.machine()}", "load": [load, os.getloadavg()[0]],
                    "numpy": numpy.__version__, "scipy": scipy.__version__, "runs": args.runs, "cases": rows}
        results_file.write(args.json, document)


if __name__ == "__main__":
    main()
