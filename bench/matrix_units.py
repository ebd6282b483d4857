#!/usr/bin/env python3
"""Products of matrices of f16, bf16 and f64 on this machine's GPU beside torch's (cuBLAS), in one run.

    bench/matrix_units.py APLC [--json FILE] [--sizes 4096,8192]

All four layouts: MM0 A B, MM1 A^T B, MM2 A B^T, MM3 A^T B^T. Ours: medians of `aplc bench --backend=cuda`, whole calls of a
program, with what the host does; torch: medians of device events around single calls. 16-bit factors have sums in f32:
ours gives results in f32, torch's in 16 bits. TFLOP/s are 2 n^3 operations over the time.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

LAYOUTS = [("mm0", "[n][m]", "[m][b]", "A", "transpose B"), ("mm1", "[m][n]", "[m][b]", "transpose A", "transpose B"),
           ("mm2", "[n][m]", "[b][m]", "A", "B"), ("mm3", "[m][n]", "[b][m]", "transpose A", "B")]
TYPES = {"f16": ("f16", "f32", "", "f32.f16 x * f32.f16 y"), "bf16": ("f32", "f32", "#[bf16(A, B)]\n", "x * y"),
         "f64": ("f64", "f64", "", "x * y")}


def program(kind, sizes):
    element, result, attribute, product = TYPES[kind]
    text = ""
    for name, a, b, rows, columns in LAYOUTS:
        inputs = "".join(f"-- random input {{ [{n}][{n}]{element} [{n}][{n}]{element} }}\n" for n in sizes)
        text += (f"-- ==\n-- entry: {name}\n{inputs}{attribute}entry {name} [n][m][b] (A: {a}{element}) (B: {b}{element}): "
                 f"[n][b]{result} =\n  map (\\r -> map (\\c -> {result}.sum (map2 (\\x y -> {product}) r c)) ({columns})) ({rows})\n\n")
    return text


def times_of(aplc, kind, sizes, folder):
    """Microseconds by (layout, size)."""
    source, report = folder / f"{kind}.fut", folder / f"{kind}.json"
    source.write_text(program(kind, sizes))
    subprocess.run([aplc, "bench", "--backend=cuda", "--json", report, source], check=True, stdout=subprocess.DEVNULL)
    found = {}
    for entry, values in json.loads(report.read_text()).items():
        layout = entry.rsplit(":", 1)[1]
        for case, measured in values["datasets"].items():
            size = int(case.split("]")[0].split("[")[1])
            found[layout, size] = statistics.median(measured["runtimes"])
    return found


def torch_times(kind, sizes):
    import torch

    dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}[kind]
    found = {}
    for n in sizes:
        a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        for layout, x, y in (("mm0", a, b), ("mm1", a.t(), b), ("mm2", a, b.t()), ("mm3", a.t(), b.t())):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            runs = []
            for _ in range(25):
                begin.record()
                x @ y
                end.record()
                torch.cuda.synchronize()
                runs.append(begin.elapsed_time(end) * 1e3)
            found[layout, n] = statistics.median(runs[5:])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("aplc")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[4096])
    options = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in TYPES:
            ours, theirs = times_of(options.aplc, kind, options.sizes, pathlib.Path(folder)), torch_times(kind, options.sizes)
            for (layout, n), microseconds in sorted(ours.items()):
                rate = 2 * n**3 / microseconds / 1e6
                peer = 2 * n**3 / theirs[layout, n] / 1e6
                lines.append({"case": layout, "type": kind, "size": n, "us": round(microseconds, 1), "tflops": round(rate, 1),
                              "torch_us": round(theirs[layout, n], 1), "torch_tflops": round(peer, 1)})
                print(f"{kind:5} {layout} {n:6} {microseconds:9.1f} us {rate:7.1f} TFLOP/s, torch {peer:7.1f}: {rate / peer:.2f}",
                      flush=True)
    if options.json:
        options.json.write_text(json.dumps({"products": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
