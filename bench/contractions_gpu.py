#!/usr/bin/env python3
"""Contractions on this machine's NVIDIA GPU beside torch.einsum (cuBLAS) in one run, and beside what the model predicts.

    bench/contractions_gpu.py APLC [--types f32,f64,f16] [--groups mm,sd,tccg,shapes] [--only NAME] [--small] [--json FILE]

Each case is a program of nested maps around a sum, a CUDA library of its own on torch's memory and stream, with default
plans. f16: operands in 16 bits, sums and results in f32, torch's results in 16 bits. Times are medians of batches of
calls; results are compared in full with torch's in f64. The floor is the larger of operations over the rate of the units
and bytes over the bandwidth, both as measured in this run (a product of 8192 by 8192, a copy). Exit status 0 only if
every result is right.
"""
import argparse
import concurrent.futures
import json
import math
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch

import results_file
from contractions_cpu import program
from gpu_library import Library, build, milliseconds

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16}


def cases(groups, small):
    """Group, name, einsum and sizes."""
    n = 256 if small else 4096
    if "mm" in groups:
        for name, left, right in (("mm0", "aq", "bq"), ("mm1", "aq", "qb"), ("mm2", "qa", "bq"), ("mm3", "qa", "qb")):
            yield "mm", name, "ab", left, right, dict(a=n, b=n, q=n)
    if "sd" in groups:
        for number, (n, q) in enumerate(((32, 32), (32, 31), (31, 31), (16, 2048)), 1):
            sizes = dict.fromkeys("abcijk", 6 if small else n) | {"q": q}
            yield "sd", f"sd1_7_ds{number}", "abcijk", "icaq", "qbjk", sizes
            yield "sd", f"sd2_3_ds{number}", "abcijk", "kiaq", "bcjq", sizes
    if "tccg" in groups:
        for line in (HERE / "tccg48.txt").read_text().splitlines():
            if not line.startswith("#"):
                name, result, _, left, _, right, *sizes = line.split()
                sizes = {s.split("=")[0]: int(s.split("=")[1]) for s in sizes}
                yield "tccg", name, result, left, right, {c: min(v, 20) for c, v in sizes.items()} if small else sizes
    if "shapes" in groups:
        k = 16 if small else 1
        for n in (4096, 32768):
            yield "shapes", f"rows_vector_{n}", "m", "mk", "k", dict(m=n // k, k=n // k)
            yield "shapes", f"columns_vector_{n}", "m", "km", "k", dict(m=n // k, k=n // k)
        for n in (4, 16, 64):
            yield "shapes", f"tall_{n}", "mn", "mk", "kn", dict(m=2**20 // k, n=n, k=64)
        yield "shapes", "tall_4096x8", "mn", "mk", "kn", dict(m=4096, n=8, k=4096 // k)
        yield "shapes", "few_results", "mn", "km", "kn", dict(m=128, n=128, k=2**20 // k)
        for n in (512, 768, 1024, 3000, 4097, 5000):
            yield "shapes", f"square_{n}", "mn", "mk", "kn", dict.fromkeys("mnk", n // k)
        for batch, n in ((10**6, 4), (65536, 16), (512, 128)):
            yield "shapes", f"batch_{n}", "bmn", "bmk", "bkn", dict(b=batch // k, m=n, n=n, k=n)
        yield "shapes", "scores", "hij", "hid", "hjd", dict(h=16, i=2048 // k, j=2048 // k, d=64)
        yield "shapes", "context", "hid", "hij", "hjd", dict(h=16, i=2048 // k, j=2048 // k, d=64)


def predicted(aplc, file, sizes, device):
    """Microseconds, variant and plan by the model."""
    command = [aplc, "explain", "--json", f"--device={device}", file]
    for name, size in sizes.items():
        command += ["--size", f"s{name}={size}"]
    found = subprocess.run(command, capture_output=True, text=True)
    plans = [e for e in json.loads(found.stdout or "[]") if e["pass"] == "plan" and "plan" in e["facts"]]
    if not plans:
        return None
    time_of = plans[0]["message"].rsplit(", ", 1)[1].split()[0]
    return {"us": float(time_of), "variant": plans[0]["facts"].get("variant"), "plan": plans[0]["facts"]["plan"]}


def rates():
    """Operations a second of each type's products, bytes a second of a copy."""
    found = {}
    for kind, element in TYPES.items():
        x = torch.rand(8192, 8192, device="cuda").to(element)
        found[kind] = 2 * 8192**3 / milliseconds(lambda: x @ x, 0.1) * 1e3
    x = torch.empty(1 << 28, device="cuda")
    y = torch.empty_like(x)
    found["bytes"] = 8 * x.numel() / milliseconds(lambda: y.copy_(x)) * 1e3
    return found


def rank_correlation(pairs):
    def ranks(values):
        order = sorted(range(len(values)), key=values.__getitem__)
        return {k: rank for rank, k in enumerate(order)}
    a, b = (ranks([pair[side] for pair in pairs]) for side in (0, 1))
    n = len(pairs)
    return 1 - 6 * sum((a[k] - b[k]) ** 2 for k in range(n)) / (n * (n * n - 1)) if n > 1 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("aplc")
    parser.add_argument("--types", default="f32,f64,f16")
    parser.add_argument("--groups", default="mm,sd,tccg,shapes")
    parser.add_argument("--only", default="")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    device = "h100" if "H100" in torch.cuda.get_device_name() else "h200"
    rate = rates()
    print(torch.cuda.get_device_name() + ":", ", ".join(f"{k} {v / 1e12:.2f} T/s" for k, v in rate.items()))
    print(f"{'case':26}{'us':>9}{'torch':>9}{'TFLOP/s':>9}{'best/ours':>10}{'floor/ours':>11}{'measured/predicted':>19}  variant")
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        chosen = [(kind, *case) for kind in options.types.split(",") for case in cases(options.groups.split(","), options.small)
                  if options.only in case[1] and (kind, case[0]) != ("f64", "sd")]  # results of 9 GB
        with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
            later = [pool.submit(prepare, options.aplc, folder, device, case) for case in chosen]
            concurrent.futures.wait(later)
        for case, prepared in zip(chosen, later):
            kind, group, name, result, _, _, _ = case
            try:
                model = prepared.result()
                library = Library("main", results_of(kind, result), folder, f"{name}_{kind}")
                row = measure(case, library, model, rate, options.seconds)
            except Exception as error:  # of a worker, too
                print(f"{name} {kind} failed: {str(error)[-300:]}")
                wrong += 1
                continue
            wrong += not row["right"]
            rows.append(row)
            print(f"{name + ' ' + kind:26}{row['us']:9.1f}{row['torch_us']:9.1f}{row['tflops']:9.1f}"
                  f"{row['torch_us'] / row['us']:10.2f}{row['floor_us'] / row['us']:11.2f}"
                  f"{row['us'] / model['us'] if model else float('nan'):19.2f}  {model and model['variant']}"
                  f"{'' if row['right'] else '  WRONG %.2g' % row['error']}", flush=True)
    for kind in options.types.split(","):
        for group in options.groups.split(","):
            some = [row for row in rows if row["type"] == kind and row["group"] == group]
            if some:
                ratios = [row["torch_us"] / row["us"] for row in some]
                print(f"{kind} {group}: {statistics.geometric_mean(row['tflops'] for row in some):.1f} TFLOP/s, torch over ours "
                      f"{statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}; of the floor "
                      f"{statistics.geometric_mean(row['floor_us'] / row['us'] for row in some):.2f}")
    f32 = {row["name"]: row["us"] for row in rows if row["type"] == "f32"}
    slower = [row["name"] for row in rows if row["type"] == "f16" and row["us"] > 1.02 * f32.get(row["name"], math.inf)]
    print("f16 slower than f32:", ", ".join(slower) or "none")
    judged = [(row["us"], row["predicted"]["us"]) for row in rows if row["predicted"] and row["us"] > 20]
    if judged:
        within = sum(1 / 1.3 <= a / b <= 1.3 for a, b in judged) / len(judged)
        print(f"measured over predicted within 1.3 in {100 * within:.0f} % of {len(judged)} cases from 20 us, rank correlation "
              f"{rank_correlation(judged) or math.nan:.3f}")
    print(f"{wrong} of {len(rows)} wrong")
    if options.json:
        record = {"date": time.strftime("%Y-%m-%d"), "device": torch.cuda.get_device_name(), "torch": torch.__version__,
                  "rates": rate, "small": options.small, "cases": rows}
        results_file.write(options.json, record)
    return 1 if wrong else 0


def results_of(kind, result):
    return [(torch.float32 if kind == "f16" else TYPES[kind], len(result))]


def operands(case):
    kind, _, _, _, left, right, sizes = case
    return [torch.rand([sizes[c] for c in dims], device="cuda", dtype=torch.float32).sub_(0.5).to(TYPES[kind])
            for dims in (left, right)]


def prepare(aplc, folder, device, case):
    """In a process of its own: the library, its kernels, and what the model says."""
    kind, _, name, result, left, right, sizes = case
    name = f"{name}_{kind}"
    build(aplc, program(result, left, right, "f32", "f16") if kind == "f16" else program(result, left, right, kind), folder, name)
    Library("main", results_of(kind, result), folder, name).warm(operands(case))
    torch.cuda.empty_cache()
    return predicted(aplc, folder / f"{name}.fut", sizes, device)


def measure(case, library, model, rate, seconds):
    kind, group, name, result, left, right, sizes = case
    spec = f"{left},{right}->{result}"
    x, y = operands(case)
    ours = library.arguments([x, y])
    slots = library.call(ours)
    got = library.values(slots)[0]
    library.release(slots)
    # In f64 where there is memory for it; else against torch's f32.
    count = math.prod(sizes[c] for c in result)
    exact = torch.einsum(spec, *(((x.double(), y.double())) if count < 1 << 29 else (x.float(), y.float())))
    exact = exact.cpu()
    error = float((got.double() - exact.double()).norm() / exact.double().norm()) if count < 1 << 29 else float(
        (got - exact).abs().max() / exact.abs().max())
    del got, exact
    us = 1e3 * milliseconds(lambda: library.release(library.call(ours)), seconds)
    library.forget()
    torch_us = 1e3 * milliseconds(lambda: torch.einsum(spec, x, y).contiguous(), seconds)
    torch.cuda.empty_cache()
    work = 2 * math.prod(sizes.values())
    bytes_moved = sum(t.numel() * t.element_size() for t in (x, y)) + count * (4 if kind == "f16" else x.element_size())
    floor = 1e6 * max(work / rate[kind], bytes_moved / rate["bytes"])
    # Sums of f16 products are kept in f32; matrix units truncate what they add to them, 16 products at a time.
    steps = work / 2 / count / 16
    most = {"f32": 1e-5, "f64": 1e-12, "f16": max(1e-5, steps * 2.0**-23)}[kind]
    return {"type": kind, "group": group, "name": name, "einsum": spec, "sizes": sizes, "us": us, "torch_us": torch_us,
            "tflops": work / us / 1e6, "floor_us": floor, "error": error, "right": error < most,
            "predicted": model}


if __name__ == "__main__":
    sys.exit(main())
