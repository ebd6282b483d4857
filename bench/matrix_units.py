#!/usr/bin/env python3
"""Products of matrices by matrix units on this machine's GPU beside torch's (cuBLAS), in one run, and their errors.

    bench/matrix_units.py APLC [--json FILE] [--sizes 4096,8192] [--types f16,i8,...] [--no-times] [--backend cuda]

All four layouts: MM0 A B, MM1 A^T B, MM2 A B^T, MM3 A^T B^T. Ours: medians of `aplc bench --backend=cuda`, whole calls of a
program, with what the host does; torch: medians of device events around single calls. 16-bit factors have sums in f32:
ours gives results in f32, torch's in 16 bits. i8 has sums in i32 (torch._int_mm); tf32 stands beside torch with allow_tf32,
f32_3xtf32 and f32 beside torch without. TFLOP/s are 2 n^3 operations over the time.

Results of random products of odd sizes in all layouts are compared with those of f64 (integers: in each bit): the error is
that of all elements, by norms, beside that of the same product in f32 where that is what is asked for. The exit status is 1
if one is beyond its bound: 2e-3 for 16 bits and tf32, 2.5 times the error in f32 for f32_3xtf32 where that is above 1e-8.
"""
import argparse
import json
import math
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile

import results_file

LAYOUTS = [("mm0", "[n][m]", "[m][b]", "A", "transpose B"), ("mm1", "[m][n]", "[m][b]", "transpose A", "transpose B"),
           ("mm2", "[n][m]", "[b][m]", "A", "B"), ("mm3", "[m][n]", "[b][m]", "transpose A", "B")]
TYPES = {"f16": ("f16", "f32", "", "f32.f16 x * f32.f16 y"), "bf16": ("f32", "f32", "#[bf16(A, B)]\n", "x * y"),
         "f64": ("f64", "f64", "", "x * y"), "i8": ("i8", "i32", "", "i32.i8 x * i32.i8 y"),
         "u8i8": ("u8", "i32", "", "i32.u8 x * i32.i8 y"), "f32": ("f32", "f32", "", "x * y"),
         "tf32": ("f32", "f32", "#[tf32]\n", "x * y"), "f32_3xtf32": ("f32", "f32", "#[f32_3xtf32]\n", "x * y")}
TIMED = ["f16", "bf16", "f64", "i8", "f32", "tf32", "f32_3xtf32"]


def program(kind, sizes):
    element, result, attribute, product = TYPES[kind]
    other = "i8" if kind == "u8i8" else element
    text = ""
    for name, a, b, rows, columns in LAYOUTS:
        inputs = "".join(f"-- random input {{ [{n}][{n}]{element} [{n}][{n}]{other} }}\n" for n in sizes)
        text += (f"-- ==\n-- entry: {name}\n{inputs}{attribute}entry {name} [n][m][b] (A: {a}{element}) (B: {b}{other}): "
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
    """None where torch refuses."""
    import torch

    dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i8": torch.int8}.get(kind, torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
    found = {}
    for n in sizes:
        if kind == "i8":
            a, b = (torch.randint(-128, 128, (n, n), device="cuda", dtype=dtype) for _ in range(2))
        else:
            a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        multiply = torch._int_mm if kind == "i8" else torch.matmul
        for layout, x, y in (("mm0", a, b), ("mm1", a.t(), b), ("mm2", a, b.t()), ("mm3", a.t(), b.t())):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            runs = []
            try:
                for _ in range(25):
                    begin.record()
                    multiply(x, y)
                    end.record()
                    torch.cuda.synchronize()
                    runs.append(begin.elapsed_time(end) * 1e3)
            except RuntimeError:
                found[layout, n] = None
                continue
            found[layout, n] = statistics.median(runs[5:])
    return found


# ---- errors ----

NUMPY = {"f16": "float16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8", "i32": "int32"}
SHAPES = [(70, 33, 96), (129, 200, 32), (64, 256, 257), (144, 272, 160), (130, 66, 4096)]  # n, b, m


def binary(array, kind):
    """In Futhark's binary format."""
    return (b"b" + bytes([2, array.ndim]) + kind.rjust(4).encode() + struct.pack(f"<{array.ndim}q", *array.shape) +
            array.tobytes())


def product_of(aplc, backend, source, layout, arguments, kind):
    import numpy

    made = subprocess.run([aplc, "run", f"--backend={backend}", "-b", "-e", layout, str(source)] +
                          [f"@{path}" for path in arguments], check=True, stdout=subprocess.PIPE).stdout
    at = made.index(b"b\x02\x02") + 3
    shape = struct.unpack("<2q", made[at + 4:at + 20])
    return numpy.frombuffer(made[at + 20:], NUMPY[kind], math.prod(shape)).reshape(shape)


def errors_of(aplc, backend, kind, folder, shapes):
    """Lines with the error of each shape and layout, and whether it is within its bound."""
    import numpy

    element, result, _, _ = TYPES[kind]
    other = "i8" if kind == "u8i8" else element
    random = numpy.random.default_rng(1)
    source = folder / f"errors_{kind}.fut"
    source.write_text(program(kind, []).replace("-- ==\n", ""))
    found = []
    for n, b, m in shapes:
        integers = result == "i32"

        def draw(shape, of):
            if integers:
                limits = numpy.iinfo(NUMPY[of])
                return random.integers(limits.min, limits.max + 1, shape).astype(NUMPY[of])
            return random.uniform(-1, 1, shape).astype(NUMPY[of])

        x, y = draw((n, m), element), draw((m, b), other)
        rounded = [v.astype("int64" if integers else "float64") for v in (x, y)]
        if kind == "bf16":  # what the entry keeps of them: the nearest, ties to even
            for k, v in enumerate((x, y)):
                bits = v.view("uint32").astype("uint64")
                bits = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype("uint32")
                rounded[k] = bits.view("float32").astype("float64")
        exact = rounded[0] @ rounded[1]
        in_f32 = float(numpy.linalg.norm(x.astype("float32") @ y.astype("float32") - exact) / numpy.linalg.norm(exact))
        for layout, a, c, _, _ in LAYOUTS:
            files = []
            for name, array, of, turned in (("A", x, element, a == "[m][n]"), ("B", y, other, c == "[b][m]")):
                files.append(folder / f"{name}.bin")
                files[-1].write_bytes(binary(numpy.ascontiguousarray(array.T if turned else array), of))
            ours = product_of(aplc, backend, source, layout, files, result)
            line = {"case": layout, "type": kind, "shape": f"{n}x{b}x{m}"}
            if integers:
                line["error"] = int(numpy.count_nonzero(ours != exact.astype("int32")))
                bound = 0
            else:
                line["error"] = float(numpy.linalg.norm(ours - exact) / numpy.linalg.norm(exact))
                bound = {"f64": 1e-13, "f32": 4e-6, "f32_3xtf32": 2.5 * max(in_f32, 1e-8)}.get(kind, 2e-3)
            line["f32"], line["within"] = in_f32, line["error"] <= bound
            found.append(line)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("aplc")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], default=[4096])
    parser.add_argument("--types", type=lambda text: text.split(","), default=list(TYPES))
    parser.add_argument("--no-times", action="store_true", help="errors alone")
    parser.add_argument("--backend", default="cuda", help="for the errors: emulate needs no GPU")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="how many are compared")
    options = parser.parse_args()
    lines, errors, wrong = [], [], 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for kind in options.types:
            found = errors_of(options.aplc, options.backend, kind, folder, SHAPES[:options.shapes])
            errors += found
            for line in found:
                wrong += not line["within"]
                if not line["within"]:
                    print(f"WRONG {line}", flush=True)
            worst = max(found, key=lambda line: line["error"])
            print(f"{kind:10} {len(found)} products, worst error {worst['error']:.3g} ({worst['case']} {worst['shape']}; numpy "
                  f"in f32 {worst['f32']:.3g})", flush=True)
        for kind in [] if options.no_times else [k for k in TIMED if k in options.types]:
            ours, theirs = times_of(options.aplc, kind, options.sizes, folder), torch_times(kind, options.sizes)
            for (layout, n), microseconds in sorted(ours.items()):
                rate = 2 * n**3 / microseconds / 1e6
                line = {"case": layout, "type": kind, "size": n, "us": round(microseconds, 1), "tflops": round(rate, 1)}
                beside = "torch refuses it"
                if theirs[layout, n]:
                    peer = 2 * n**3 / theirs[layout, n] / 1e6
                    line |= {"torch_us": round(theirs[layout, n], 1), "torch_tflops": round(peer, 1)}
                    beside = f"torch {peer:7.1f}: {rate / peer:.2f}"
                lines.append(line)
                print(f"{kind:10} {layout} {n:6} {microseconds:9.1f} us {rate:7.1f} TFLOP/s, {beside}", flush=True)
    if options.json:
        results_file.write(options.json, {"products": lines, "errors": errors})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
