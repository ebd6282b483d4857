#!/usr/bin/env python3
"""Contractions whose operands are read under conditions, where an array of indices says, or once for all steps, on this
machine's GPU beside torch, in one run; then `aplc tune` for three contractions, with its time.

    bench/reads.py APLC [--backend cuda] [--small] [--json FILE]

Ours: medians of `aplc bench`, whole calls of a program, with what the host does; torch: medians of device events around
single calls, in f32 without TF32. `--small --backend=emulate` tries it out without a GPU, and without torch.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import results_file

PROGRAMS = {
    "conv2d 3x3": ("conv", """entry conv [n][c][h][w][o] (I: [n][c][h][w]f32) (W: [o][c][3][3]f32): [n][o][h][w]f32 =
  tabulate n (\\b -> tabulate_3d o h w (\\f i j ->
    f32.sum (flatten_3d (tabulate_3d c 3 3 (\\k di dj ->
      let y = i + di - 1
      let x = j + dj - 1
      in (if y >= 0 && y < h && x >= 0 && x < w then I[b, k, y, x] else 0) * W[f, k, di, dj])))))
""", "[{n}][{c}][{h}][{h}]f32 [{o}][{c}][3][3]f32", dict(n=8, c=64, h=56, o=128), dict(n=1, c=2, h=5, o=3),
                   lambda s: 2 * s["n"] * s["c"] * 9 * s["h"] ** 2 * s["o"]),
    "conv2d 3x3, channels last": ("conv_last", """entry conv_last [n][h][w][c][o] (I: [n][h][w][c]f32) (W: [o][3][3][c]f32): [n][h][w][o]f32 =
  tabulate n (\\b -> tabulate_3d h w o (\\i j f ->
    f32.sum (map (\\di -> f32.sum (map (\\dj -> f32.sum (map (\\k ->
      let y = i + di - 1
      let x = j + dj - 1
      in (if y >= 0 && y < h && x >= 0 && x < w then I[b, y, x, k] else 0) * W[f, di, dj, k]) (iota c))) (iota 3))) (iota 3))))
""", "[{n}][{h}][{h}][{c}]f32 [{o}][3][3][{c}]f32", dict(n=8, c=64, h=56, o=128), dict(n=1, c=2, h=5, o=3),
                                  lambda s: 2 * s["n"] * s["c"] * 9 * s["h"] ** 2 * s["o"]),
    "index_select, matmul": ("rows", """entry rows [v][q][m] (r: i64) (A: [v][q]f32) (B: [m][q]f32): [r][m]f32 =
  let I = tabulate r (\\i -> i * 7919 % v)
  in map (\\i -> map (\\b -> f32.sum (map2 (*) A[i] b)) B) I
""", "{r}i64 [{v}][{q}]f32 [{m}][{q}]f32", dict(r=8192, v=100000, q=512, m=1024), dict(r=5, v=7, q=9, m=3),
                             lambda s: 2 * s["r"] * s["q"] * s["m"]),
    "sum of max (x y) s": ("once", """entry once [n][m][q] (A: [n][q]f32) (B: [m][q]f32) (S: [n][m]f32): [n][m]f32 =
  map2 (\\a ss -> map2 (\\b s -> f32.sum (map2 (\\x y -> f32.max (x * y) s) a b)) B ss) A S
""", "[{n}][{q}]f32 [{n}][{q}]f32 [{n}][{n}]f32", dict(n=2048, q=2048), dict(n=9, q=7),
                           lambda s: 3 * s["n"] ** 2 * s["q"]),
}
TUNED = [("mm", "entry mm [n][m][q] (A: [n][q]f32) (B: [q][m]f32): [n][m]f32 =\n"
                "  map (\\a -> map (\\b -> f32.sum (map2 (*) a b)) (transpose B)) A\n", "[{n}][{n}]f32 [{n}][{n}]f32",
          dict(n=2048), dict(n=33)),
         ("conv",) + PROGRAMS["conv2d 3x3"][1:5], ("rows",) + PROGRAMS["index_select, matmul"][1:5]]


def written(folder, entry, text, inputs):
    source = folder / f"{entry}.fut"
    source.write_text(f"-- ==\n-- entry: {entry}\n-- random input {{ {inputs} }}\n{text}")
    return source


def ours(aplc, backend, folder, entry, text, inputs):
    """Microseconds."""
    source, report = written(folder, entry, text, inputs), folder / f"{entry}.json"
    subprocess.run([aplc, "bench", f"--backend={backend}", "--json", report, source], check=True, stdout=subprocess.DEVNULL)
    (measured,) = json.loads(report.read_text()).values()
    (case,) = measured["datasets"].values()
    return statistics.median(case["runtimes"])


def torch_time(name, s):
    """Microseconds; none where torch has nothing of the kind, or is not there."""
    try:
        import torch
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    if name.startswith("conv2d"):
        form = torch.channels_last if "last" in name else torch.contiguous_format
        image = torch.randn(s["n"], s["c"], s["h"], s["h"], device="cuda").to(memory_format=form)
        weights = torch.randn(s["o"], s["c"], 3, 3, device="cuda").to(memory_format=form)
        call = lambda: torch.nn.functional.conv2d(image, weights, padding=1)
    elif name.startswith("index_select"):
        table, right = torch.randn(s["v"], s["q"], device="cuda"), torch.randn(s["m"], s["q"], device="cuda")
        index = torch.arange(s["r"], device="cuda") * 7919 % s["v"]
        call = lambda: table.index_select(0, index) @ right.t()
    else:
        return None
    runs = []
    for _ in range(25):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        runs.append(begin.elapsed_time(end) * 1000)
    return statistics.median(runs[5:])


def tuned(aplc, backend, folder, entry, text, inputs):
    source = written(folder, f"{entry}", text, inputs)
    start = time.monotonic()
    made = subprocess.run([aplc, "tune", f"--backend={backend}", "-r", "5", source], capture_output=True, text=True)
    seconds = time.monotonic() - start
    if made.returncode != 0:
        print(made.stdout[-2000:], made.stderr[-2000:], file=sys.stderr)
        return None
    lost = re.search(r"before, ([-0-9.]+) % more than the best", made.stdout)
    best = re.search(r"^best: (.*)$", made.stdout, re.M)
    return {"seconds": seconds, "measured": made.stdout.count("\n["), "best": best.group(1),
            "default_lost_percent": float(lost.group(1))}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("aplc")
    options.add_argument("--backend", default="cuda")
    options.add_argument("--small", action="store_true")
    options.add_argument("--json", type=pathlib.Path)
    options.add_argument("--no-tune", action="store_true")
    options = options.parse_args()
    results, failed = {"times": {}, "tune": {}}, False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print(f"{'':28} {'us':>9} {'TFLOP/s':>8} {'torch us':>9} {'ratio':>6}")
        for title, (entry, text, inputs, large, small, operations) in PROGRAMS.items():
            sizes = small if options.small else large
            mine = ours(options.aplc, options.backend, folder, entry, text, inputs.format(**sizes))
            peer = None if options.small else torch_time(title, sizes)
            results["times"][title] = {"sizes": sizes, "us": mine, "torch_us": peer}
            said = f"{peer:9.1f} {peer / mine:6.2f}" if peer else ""
            print(f"{title:28} {mine:9.1f} {operations(sizes) / mine / 1e6:8.2f} {said}", flush=True)
        for entry, text, inputs, large, small in ([] if options.no_tune else TUNED):
            sizes = small if options.small else large
            got = tuned(options.aplc, options.backend, folder, entry, text, inputs.format(**sizes))
            failed = failed or got is None
            results["tune"][entry] = got
            if got:
                print(f"tune {entry:23} {got['seconds']:.0f} s, {got['measured']} measured, best {got['best'][:60]}, "
                      f"the default takes {got['default_lost_percent']:.1f} % more", flush=True)
    if options.json:
        results_file.write(options.json, results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
