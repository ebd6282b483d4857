#!/usr/bin/env python3
"""Reductions, scans and filters of whole arrays on a GPU: right for sizes from 0 to 2^26, and their times beside torch's.

    bench/reductions_gpu.py APLC [--backend B] [--small] [--only check,forced,times,sanitizer] [--json FILE]

Programs are bench/reductions.fut. `check` compares with NumPy, in each bit (floats are whole numbers small enough);
`forced` does so with many blocks for few elements; `times` are of whole calls, in microseconds: the median of calls of
`aplc bench`, and of torch with a synchronisation behind each; `sanitizer` runs compute-sanitizer's memcheck and racecheck
over a small program, where it is installed. --backend=emulate --small tries it out without a GPU. Exit status 0 only if
all is right.
"""
import argparse
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np

import results_file

parser = argparse.ArgumentParser()
parser.add_argument("aplc")
parser.add_argument("--backend", default="cuda")
parser.add_argument("--small", action="store_true")
parser.add_argument("--only", default="check,forced,times,sanitizer")
parser.add_argument("--json")
options = parser.parse_args()
wanted = options.only.split(",")
PROGRAM = pathlib.Path(__file__).with_name("reductions.fut")
CODES = {"float32": b" f32", "int32": b" i32", "int64": b" i64"}
rng = np.random.default_rng(3)
failed = 0


def binary(value):
    value = np.asarray(value)
    return b"b\x02" + struct.pack("B", value.ndim) + CODES[value.dtype.name] + struct.pack(
        f"<{value.ndim}q", *value.shape) + value.tobytes()


def f32(n):
    return rng.integers(-1, 2, n).astype(np.float32)


def i32(n):
    return rng.integers(-2**31, 2**31, n).astype(np.int32)


def after(left, right):
    return left[0] * right[0], left[1] * right[0] + right[1]


def prefixes(a, b):
    """By Hillis and Steele: the operator is associative, also where numbers wrap."""
    step = 1
    while step < len(a):
        made = after((a[:-step], b[:-step]), (a[step:], b[step:]))
        a, b = np.concatenate([a[:step], made[0]]), np.concatenate([b[:step], made[1]])
        step *= 2
    return a, b


def composed(a, b):
    while len(a) > 1:
        if len(a) % 2:
            a, b = np.append(a, np.int32(1)), np.append(b, np.int32(0))
        a, b = after((a[::2], b[::2]), (a[1::2], b[1::2]))
    return (a[0], b[0]) if len(a) else (np.int32(1), np.int32(0))


ENTRIES = {
    "sum": (lambda n: [f32(n)], lambda x: [x.sum(dtype=np.float32)]),
    "sum_i32": (lambda n: [i32(n)], lambda x: [x.sum(dtype=np.int32)]),
    "argmax": (lambda n: [f32(n)], lambda x: [np.int64(x.argmax() if len(x) else 2**63 - 1)]),
    "composed": (lambda n: [i32(n), i32(n)], lambda a, b: list(composed(a, b))),
    "prefix_sums": (lambda n: [f32(n)], lambda x: [x.cumsum(dtype=np.float32)]),
    "prefix_sums_i32": (lambda n: [i32(n)], lambda x: [x.cumsum(dtype=np.int32)]),
    "prefixes": (lambda n: [i32(n), i32(n)], lambda a, b: list(prefixes(a, b))),
    "positive": (lambda n: [i32(n)], lambda x: [x[x > 0]]),
}
SIZES = [0, 1, 2, 31, 33, 255, 257, 1000, 1025, 2047, 2049, 4095, 4097, 16384, 100003]
LARGE = [2**20 + 1, 2**22 - 3]
LARGEST = {"sum": [2**26, 2**26 - 5], "sum_i32": [2**26 + 7], "prefix_sums_i32": [2**26, 2**26 - 5],
           "positive": [2**26, 2**26 - 5]}


def check(title, sizes_of, tuning=""):
    """All cases of an entry are test blocks of one program, whose values lie beside it."""
    global failed
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        text = PROGRAM.read_text()
        count = 0
        for entry, (inputs, expected) in ENTRIES.items():
            for n in sizes_of(entry):
                values = inputs(n)
                with np.errstate(over="ignore"):
                    results = expected(*values)
                name = f"{entry}-{n}"
                (folder / f"{name}.in").write_bytes(b"".join(map(binary, values)))
                (folder / f"{name}.out").write_bytes(b"".join(map(binary, results)))
                text += f"\n-- ==\n-- entry: {entry}\n-- input @ {name}.in\n-- output @ {name}.out\n"
                count += 1
        (folder / "reductions.fut").write_text(text)
        if tuning:
            (folder / "reductions.fut.tuning").write_text(tuning)
        run = subprocess.run([options.aplc, "test", f"--backend={options.backend}", "--no-terminal", "--timeout=400",
                              str(folder / "reductions.fut")], capture_output=True, text=True)
    print(f"{title}: {count} cases {'right' if run.returncode == 0 else 'FAILED'}, {time.time() - begin:.0f} s")
    if run.returncode != 0:
        failed += 1
        print((run.stdout + run.stderr)[-3000:])


def our_times(arguments):
    """The median time of each entry's calls, by entry and number of elements; `arguments` are the random inputs."""
    text = PROGRAM.read_text()
    for entry, cases in arguments.items():
        text += f"\n-- ==\n-- entry: {entry}\n" + "".join(f"-- random input {{ {types} }}\n" for types in cases.values())
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "reductions.fut").write_text(text)
        run = subprocess.run([options.aplc, "bench", f"--backend={options.backend}", "-r", "20",
                              "--no-convergence-phase", f"--json={folder / 'times.json'}",
                              str(folder / "reductions.fut")], capture_output=True, text=True)
        times = {}
        if run.returncode != 0:
            print(run.stdout[-1000:], run.stderr[-1000:])
            return times
        for program, found in json.load(open(folder / "times.json")).items():
            entry = program.rsplit(":", 1)[-1]
            for name, dataset in found["datasets"].items():
                for n, types in arguments.get(entry, {}).items():
                    if name == types:
                        times[entry, n] = float(np.median(dataset["runtimes"]))
    return times


def torch_times(call):
    import torch
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(30):
        begin = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6)
    return float(np.median(times))


def measure():
    global failed
    try:
        import torch
        has_torch = torch.cuda.is_available()
    except ImportError:
        has_torch = False
    sizes = [1000, 100000] if options.small else [1000, 100000, 2**22, 2**26]
    rows = []
    print(f"{'entry':16} {'elements':>10} {'bytes':>11} {'apl us':>10} {'GB/s':>7} {'torch us':>10} {'torch/apl':>9}")
    # What is read and written, in passes over the elements; types of the arguments.
    measured = {"sum": (1, "[{0}]f32"), "argmax": (1, "[{0}]f32"), "composed": (2, "[{0}]i32 [{0}]i32"),
                "prefix_sums": (2, "[{0}]f32"), "prefixes": (4, "[{0}]i32 [{0}]i32"), "positive": (1.5, "[{0}]i32"),
                "row_sums": (1, "[{1}][1000]f32")}
    all_times = our_times({entry: {n: types.format(n, n // 1000) for n in sizes}
                           for entry, (_, types) in measured.items()})
    for entry, (passes, _) in measured.items():
        for n in sizes:
            ours = all_times.get((entry, n))
            failed += ours is None
            peer = None
            if has_torch:
                x = torch.randn(n, device="cuda")
                k = torch.randint(-2**31, 2**31 - 1, (n,), device="cuda", dtype=torch.int32)
                calls = {"sum": lambda: x.sum().item(), "argmax": lambda: x.argmax().item(),
                         "prefix_sums": lambda: torch.cumsum(x, 0), "positive": lambda: torch.masked_select(k, k > 0),
                         "row_sums": lambda: x[:n // 1000 * 1000].view(-1, 1000).sum(1)}
                peer = torch_times(calls[entry]) if entry in calls else None
                del x, k
            size = int(passes * 4 * n)
            rows.append({"entry": entry, "elements": n, "bytes": size, "apl_us": ours, "torch_us": peer})
            say = lambda number, form: form.format(number) if number else "-"
            print(f"{entry:16} {n:10} {size:11} {say(ours, '{:.1f}'):>10} "
                  f"{say(ours and size / ours / 1e3, '{:.0f}'):>7} {say(peer, '{:.1f}'):>10} "
                  f"{say(peer and ours and peer / ours, '{:.2f}'):>9}", flush=True)
    return rows


def sanitize():
    global failed
    tool = shutil.which("compute-sanitizer")
    if not tool:
        print("compute-sanitizer is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for entry, inputs in [("composed", [i32(30000), i32(30000)]), ("prefixes", [i32(30000), i32(30000)]),
                              ("positive", [i32(30000)]), ("sum", [f32(30000)])]:
            (folder / "in").write_bytes(b"".join(map(binary, inputs)))
            for mode in ("memcheck", "racecheck"):
                with open(folder / "in", "rb") as values:
                    run = subprocess.run(
                        [tool, "--tool", mode, "--error-exitcode", "9", "--print-limit", "5", options.aplc, "run",
                         f"--backend={options.backend}", "-e", entry, "-b", "--param", f"{entry}.blocks=37", str(PROGRAM)],
                        stdin=values, capture_output=True)
                said = [line for line in (run.stdout + run.stderr).decode(errors="replace").splitlines()
                        if "SUMMARY" in line]
                print(f"{mode} {entry}: {said[-1] if said else ''} {'' if run.returncode == 0 else 'FAILED'}")
                failed += run.returncode != 0


results = {"rows": []}
if "check" in wanted:
    check("sizes", lambda entry: SIZES if options.small else SIZES + LARGE + LARGEST.get(entry, []))
if "forced" in wanted:
    forced = "".join(f"{entry}.blocks=45\n" for entry in ENTRIES)
    check("45 blocks at least", lambda entry: [1, 44, 45, 181, 1000, 5003] + ([] if options.small else [1000003]), forced)
if "times" in wanted:
    results["rows"] = measure()
if "sanitizer" in wanted:
    sanitize()
if options.json:
    results_file.write(options.json, results)
sys.exit(1 if failed else 0)
