#!/usr/bin/env python3
"""Array programs on this machine's NVIDIA GPU beside torch, torch.compile, JAX, CUB and plain CUDA loops in one run.

    bench/programs_gpu.py APLC [--small] [--only NAME,...] [--jax] [--compile] [--json FILE]

Programs are bench/programs_gpu.fut: each entry a CUDA library of its own, called on torch's device memory and stream.
Peers beside torch are bench/programs_gpu.cu, where nvcc compiles it, JAX with --jax and torch.compile with --compile.
Times are milliseconds a call, the median of five batches of calls that are waited for at their end; nothing is copied
to or from the device in them but scalar results. Results are compared with torch's in f64 where it has a way to say
them. A peer that is not here is left out, with the reason. Exit status 0 only if every result is right.
"""
import argparse
import concurrent.futures
import ctypes
import math
import multiprocessing
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
parser = argparse.ArgumentParser()
parser.add_argument("aplc")
parser.add_argument("--small", action="store_true", help="sizes for a first try")
parser.add_argument("--only", default="")
parser.add_argument("--jax", action="store_true")
parser.add_argument("--compile", action="store_true")
parser.add_argument("--seconds", type=float, default=0.05, help="of a batch of calls")
parser.add_argument("--jobs", type=int, default=os.cpu_count())
parser.add_argument("--json")
options = parser.parse_args()

import torch

import results_file
from gpu_library import Library, build, milliseconds

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE / "programs_gpu.fut"
device = torch.device("cuda")
generator = torch.Generator(device=device)
generator.manual_seed(1)
F32, I32, I64, U8 = torch.float32, torch.int32, torch.int64, torch.uint8
# Type and rank of each result of each entry.
VECTOR, MATRIX, CUBE = [(F32, 1)], [(F32, 2)], [(F32, 3)]
RESULTS = {
    "sum": [(F32, 0)], "argmax": [(I64, 0)], "dot": [(F32, 0)], "chain": VECTOR, "ones": VECTOR, "scan_f32": VECTOR,
    "scan_i32": [(I32, 1)], "scan_pairs": VECTOR * 2, "rows": VECTOR, "columns": VECTOR, "row_scan": MATRIX,
    "counts": [(I32, 1)], "weights": VECTOR, "kept": VECTOR, "scattered": VECTOR, "gathered": VECTOR, "transposed": MATRIX,
    "cab": CUBE, "cba": CUBE, "heat_2d": MATRIX, "heat_3d": CUBE, "life": [(U8, 2)], "softmax": MATRIX, "layernorm": MATRIX,
    "black_scholes": VECTOR * 2, "bodies": VECTOR * 3, "mandelbrot": [(I32, 2)], "kmeans": MATRIX, "window": MATRIX,
    "window_3": MATRIX, "window_7": MATRIX, "small_products": CUBE, "distances": VECTOR, "paths": MATRIX, "lu": MATRIX,
    "sorted": [(I32, 1)], "fft": VECTOR * 2, "attention": CUBE,
}
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def f32(*shape):
    return torch.rand(shape, device=device, generator=generator)


def i32(below, *shape):
    return torch.randint(below, shape, device=device, generator=generator, dtype=I32)


def whole(*shape):
    """Small whole numbers, whose sums are exact."""
    return torch.randint(-3, 4, shape, device=device, generator=generator, dtype=I32).to(F32)


# An entry's text ends where the next one, or what is said of it, begins.
SOURCES = {text.split()[1]: text for text in re.split(r"^(?=entry )|^--.*$", PROGRAM.read_text(), flags=re.M)
           if text.startswith("entry ")}


def attention_by_products(q, k, v):
    return torch.softmax(q @ k.transpose(1, 2) / math.sqrt(q.shape[2]), dim=2) @ v


def layernorm(x):
    return torch.nn.functional.layer_norm(x, x.shape[1:], eps=1e-5)


def black_scholes(s, x, t):
    def distribution(d):
        k = 1 / (1 + 0.2316419 * d.abs())
        polynomial = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
        tail = 0.39894228 * torch.exp(-0.5 * d * d) * polynomial
        return torch.where(d > 0, 1 - tail, tail)
    r, v = 0.02, 0.3
    d1 = (torch.log(s / x) + (r + 0.5 * v * v) * t) / (v * t.sqrt())
    c1, c2 = distribution(d1), distribution(d1 - v * t.sqrt())
    discounted = x * torch.exp(-r * t)
    return s * c1 - discounted * c2, discounted * (1 - c2) - s * (1 - c1)


def bodies(xs, ys, zs, ms):
    parts = []
    for i in range(0, xs.numel(), 4096):
        d = [p[None, :] - p[i:i + 4096, None] for p in (xs, ys, zs)]
        s = ms * torch.rsqrt(d[0] ** 2 + d[1] ** 2 + d[2] ** 2 + 0.01) ** 3
        parts.append([(s * c).sum(dim=1) for c in d])
    return tuple(torch.cat(part) for part in zip(*parts))


def heat_2d(steps, u):
    for _ in range(steps):
        v = u.clone()
        v[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])
        u = v
    return u


def heat_3d(steps, u):
    for _ in range(steps):
        v = u.clone()
        c = u[1:-1, 1:-1, 1:-1]
        v[1:-1, 1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1] + u[1:-1, 2:, 1:-1] +
                                      u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:] - 6 * c)
        u = v
    return u


def life(steps, u):
    for _ in range(steps):
        around = sum(torch.roll(u, (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if (a, b) != (0, 0))
        u = ((around == 3) | ((around == 2) & (u == 1))).to(U8)
    return u


def window(x, w):
    return torch.nn.functional.conv2d(x[None, None], w[None, None])[0, 0]


def kmeans(points, centres):
    which = torch.cdist(points, centres).argmin(dim=1)
    sums = torch.zeros_like(centres).index_add_(0, which, points)
    return sums / torch.bincount(which, minlength=len(centres)).clamp(min=1)[:, None]


def paths(d):
    for k in range(len(d)):
        d = torch.minimum(d, d[:, k, None] + d[None, k])
    return d


def lu(a):
    return torch.linalg.lu_factor_ex(a, pivot=False)[0]


def pairs(a, b):
    """By doubling, in f64."""
    a, b, step = a.double(), b.double(), 1
    while step < a.numel():
        low_a, low_b = a[:-step], b[:-step]
        b = torch.cat([b[:step], torch.maximum(low_b + a[step:], b[step:])])
        a = torch.cat([a[:step], low_a + a[step:]])
        step *= 2
    return a, b


S = (1 << 10) if options.small else 1


def square(n):
    return n // math.isqrt(S)


def cases():
    """Name, entry, arguments, torch's way, bytes that must move (0: bound by something else)."""
    n = (1 << 28) // S
    one = f32(n)
    yield "sum 2^28", "sum", [one], torch.sum, 4 * n
    yield "argmax 2^28", "argmax", [one], torch.argmax, 4 * n
    yield "dot 2^28", "dot", [one, f32(n)], torch.dot, 8 * n
    yield "chain 2^28", "chain", [one], lambda x: torch.exp(-torch.sqrt(x * 2 + 1)), 8 * n
    yield "fill 2^28", "ones", [ctypes.c_int64(n)], lambda _: torch.ones(n, device=device), 4 * n
    n = (1 << 27) // S
    half, numbers = whole(n), i32(7, n)
    yield "scan f32 2^27", "scan_f32", [half], lambda x: torch.cumsum(x, 0), 8 * n
    yield "scan i32 2^27", "scan_i32", [numbers], lambda x: torch.cumsum(x, 0, dtype=I32), 8 * n
    yield "scan of pairs 2^25", "scan_pairs", [whole(n // 4), whole(n // 4)], pairs, 4 * n
    for rows, columns in ((1 << 20, 256), (256, 1 << 20), (16, 1 << 24), (1 << 24, 16)):
        x = one.reshape(rows, -1) if options.small else one.view(rows, columns)
        yield f"rows {rows}x{columns}", "rows", [x], lambda x: x.sum(dim=1), 4 * one.numel()
        yield f"columns {rows}x{columns}", "columns", [x], lambda x: x.sum(dim=0), 4 * one.numel()
    x = half.view(-1, 1024)
    yield "row scan 2^17x1024", "row_scan", [x], lambda x: torch.cumsum(x, 1), 8 * n
    for k in (16, 4096, 1 << 20, 1 << 26):
        k = max(16, k // S)
        keys = i32(k, n)
        yield f"counts into {k}", "counts", [ctypes.c_int64(k), keys], (
            lambda k: lambda _, keys: torch.bincount(keys, minlength=k).to(I32))(k), 4 * n
        if k == 4096 // S or k == 4096:
            yield f"weights into {k}", "weights", [ctypes.c_int64(k), keys, half], (
                lambda k: lambda _, keys, vs: torch.zeros(k, device=device, dtype=vs.dtype).index_add_(0, keys, vs))(k), 8 * n
        del keys
    yield "filter half of 2^27", "kept", [one[:n].clone()], lambda x: x[x > 0.5], 6 * n
    order = torch.randperm(n, device=device, generator=generator).to(I32)
    yield "scatter 2^27", "scattered", [order, half], lambda o, v: torch.empty_like(v).index_put_((o.long(),), v), 0
    yield "gather 2^27", "gathered", [order, half], lambda o, v: v[o.long()] if options.small else v[o], 0
    del order, numbers
    x = f32(square(8192), square(8192))
    yield "transpose 8192^2", "transposed", [x], lambda x: x.t().contiguous(), 8 * x.numel()
    side = 512 // (8 if options.small else 1)
    x = f32(side, side, side)
    yield "abc->cab 512^3", "cab", [x], lambda x: x.permute(2, 0, 1).contiguous(), 8 * x.numel()
    yield "abc->cba 512^3", "cba", [x], lambda x: x.permute(2, 1, 0).contiguous(), 8 * x.numel()
    steps = ctypes.c_int32(10 if options.small else 100)
    x = f32(square(4096), square(4096))
    yield "heat 5-point 4096^2 x100", "heat_2d", [steps, x], lambda s, x: heat_2d(s.value, x), 8 * x.numel() * steps.value
    y = f32(*[256 // (8 if options.small else 1)] * 3)
    steps = ctypes.c_int32(50)
    yield "heat 7-point 256^3 x50", "heat_3d", [steps, y], lambda s, x: heat_3d(s.value, x), 8 * y.numel() * 50
    y = i32(2, square(8192), square(8192)).to(U8)
    steps = ctypes.c_int32(20)
    yield "life 8192^2 x20", "life", [steps, y], lambda s, x: life(s.value, x), 2 * y.numel() * 20
    x = f32(65536 // S, 1024)
    yield "softmax 65536x1024", "softmax", [x], lambda x: torch.softmax(x, 1), 8 * x.numel()
    yield "layernorm 65536x1024", "layernorm", [x], layernorm, 8 * x.numel()
    n = (1 << 26) // S
    some = [f32(n) + 0.5 for _ in range(3)]
    yield "Black-Scholes 2^26", "black_scholes", some, black_scholes, 20 * n
    del some
    some = [f32(32768 // (16 if options.small else 1)) for _ in range(4)]
    yield "n-body 32768", "bodies", some, bodies, 0
    yield "mandelbrot 4096^2", "mandelbrot", [ctypes.c_int64(square(4096)), ctypes.c_int32(255)], None, 0
    yield "k-means 2^20x16 k=64", "kmeans", [f32((1 << 20) // S, 16), f32(64, 16)], kmeans, 0
    x = f32(square(4096), square(4096))
    yield "window 3x3", "window_3", [x, f32(3, 3)], window, 8 * x.numel()
    yield "window 7x7", "window_7", [x, f32(7, 7)], window, 8 * x.numel()
    yield "window 3x3, size at run time", "window", [x, f32(3, 3)], window, 8 * x.numel()
    n = 10 ** 6 // S
    yield "10^6 products 4x4", "small_products", [f32(n, 4, 4), f32(n, 4, 4)], torch.bmm, 192 * n
    x, y = f32(square(8192), 4), f32(square(8192), 4)
    yield "sums of distances 8192^2", "distances", [x, y], lambda x, y: torch.cdist(x, y).sum(dim=1), 0
    yield "Floyd-Warshall 1024", "paths", [f32(square(1024), square(1024))], paths, 0
    n = square(1024)
    yield "LU 1024", "lu", [f32(n, n) + n * torch.eye(n, device=device)], lu, 0
    x = torch.randint(-2**31, 2**31 - 1, ((1 << 24) // S,), device=device, generator=generator, dtype=I32)
    yield "radix sort 2^24", "sorted", [x], lambda x: torch.sort(x).values, 0
    bits = 20 - (5 if options.small else 0)
    x, y = whole(1 << bits), whole(1 << bits)
    yield "FFT 2^20", "fft", [ctypes.c_int32(bits), x, y], (
        lambda _, x, y: (lambda z: (z.real, z.imag))(torch.fft.fft(torch.complex(x, y)))), 0
    qkv = [f32(16, square(2048), 64) for _ in range(3)]
    yield "attention 16x2048x64", "attention", qkv, attention_by_products, 0
    yield "chain of 1,000", "chain", [f32(1000)], lambda x: torch.exp(-torch.sqrt(x * 2 + 1)), 0
    yield "sum of 1,000", "sum", [f32(1000)], torch.sum, 0


def jax_peers():
    import jax
    import jax.numpy as jnp
    from jax import lax

    one = lambda f: jax.jit(f)
    reduce = lambda axis: one(lambda x: x.sum(axis=axis))
    window = one(lambda x, w: lax.conv_general_dilated(x[None, None], w[None, None], (1, 1), "VALID", precision="highest")[0, 0])
    return {
        "sum": one(jnp.sum), "argmax": one(jnp.argmax), "dot": one(lambda x, y: jnp.sum(x * y)),
        "chain": one(lambda x: jnp.exp(-jnp.sqrt(x * 2 + 1))), "rows": reduce(1), "columns": reduce(0),
        "transposed": one(lambda x: x.T + 0), "cab": one(lambda x: jnp.transpose(x, (2, 0, 1)) + 0),
        "cba": one(lambda x: jnp.transpose(x, (2, 1, 0)) + 0), "softmax": one(lambda x: jax.nn.softmax(x, axis=1)),
        "window_3": window, "window_7": window, "window": window, "sorted": one(jnp.sort),
        "distances": one(lambda x, y: jnp.sum(jnp.sqrt(jnp.sum((x[:, None] - y[None]) ** 2, axis=2)), axis=1)),
    }


COMPILED = {"chain", "softmax", "layernorm", "black_scholes", "kmeans", "small_products", "attention", "distances"}


def build_cuda_peers(folder):
    """CUB's and plain CUDA's as FOLDER/peers.so, or the reason why they are not there."""
    done = subprocess.run(["nvcc", "-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC",
                           HERE / "programs_gpu.cu", "-o", folder / "peers.so"], capture_output=True, text=True)
    return done.stderr[-500:] or "nvcc failed" if done.returncode else ""


def prepare(aplc, entry, folder):
    """In a process of its own: the library, and the kernels that it compiles at its start."""
    build(aplc, SOURCES[entry], folder, entry)
    Library(entry, RESULTS[entry], folder)


def cuda_call(peers, entry, arguments, sizes):
    """A call that writes arrays of `sizes` elements; None: there is no such peer."""
    function = getattr(peers, f"peer_{entry}", None)
    if function is None:
        return None
    shapes = [ctypes.c_int64(size) for value in arguments if isinstance(value, torch.Tensor) for size in value.shape]
    pointers = [ctypes.c_void_p(value.data_ptr()) if isinstance(value, torch.Tensor) else value for value in arguments]
    largest = max((value.numel() for value in arguments if isinstance(value, torch.Tensor)), default=1)
    outs = [torch.empty(max(size, largest), dtype=kind, device=device) for (kind, _), size in zip(RESULTS[entry], sizes)]
    error = function(*(ctypes.c_void_p(out.data_ptr()) for out in outs), *pointers, *shapes)
    if error:
        print(f"{entry}: no CUDA peer: error {error}")
        return None
    return lambda: function(*(ctypes.c_void_p(out.data_ptr()) for out in outs), *pointers, *shapes)


def in_f64(value):
    return value.double() if isinstance(value, torch.Tensor) and value.dtype == F32 else value


def compare(name, got, expected):
    """The largest difference over the largest number, or what is wrong."""
    worst = 0.0
    for g, e in zip(got, expected):
        e = e.cpu()
        if g.shape != e.shape:
            return f"shape {tuple(g.shape)} instead of {tuple(e.shape)}"
        if g.dtype in (I32, I64, U8):
            if not torch.equal(g, e.to(g.dtype)):
                return f"{int((g != e.to(g.dtype)).sum())} of {g.numel()} differ"
            continue
        if not torch.isfinite(g).all():
            return "not finite"
        worst = max(worst, float((g.double() - e.double()).abs().max() / e.double().abs().max().clamp(min=1e-30)))
    return worst


def main():
    wanted = set(filter(None, options.only.split(",")))
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        libraries, failed = {}, {}
        with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
            peers_later = pool.submit(build_cuda_peers, folder)
            later = {entry: pool.submit(prepare, options.aplc, entry, folder) for entry in RESULTS if not wanted or entry in wanted}
            for entry, result in later.items():
                try:
                    result.result()
                    libraries[entry] = Library(entry, RESULTS[entry], folder)
                except Exception as error:  # of a worker, too
                    failed[entry] = str(error)[-300:]
            reason = peers_later.result()
        peers = None if reason else ctypes.CDLL(str(folder / "peers.so"))
        if peers is None:
            print("no CUB and no plain CUDA:", reason)
        by_jax = {}
        if options.jax:
            try:
                by_jax = jax_peers()
            except ImportError as error:
                print("no JAX:", error)
        limit = copy_rate()
        print(f"{torch.cuda.get_device_name()}, copies at {limit / 1e12:.2f} TB/s")
        print(f"{'':30}{'ours':>9}{'torch':>9}{'compile':>9}{'JAX':>9}{'CUDA':>9}   best/ours  limit/ours")
        for name, entry, arguments, by_torch, moved in cases():
            if wanted and entry not in wanted:
                continue
            if entry not in libraries:
                print(f"{name:30} failed: {failed.get(entry, '')}")
                wrong += 1
                continue
            try:
                row = measure(name, entry, arguments, by_torch, libraries[entry], peers, by_jax)
            except (RuntimeError, torch.OutOfMemoryError) as error:
                print(f"{name:30} failed: {str(error)[:300]}")
                wrong += 1
                if not usable():
                    print("the device refuses all work after that: the cases behind it are not measured")
                    break
                continue
            times = {k: row[k] for k in ("torch", "compile", "jax", "cuda") if k in row}
            row["best_over_ours"] = min(times.values()) / row["ours"] if times else None
            row["limit_over_ours"] = moved / limit * 1e3 / row["ours"] if moved else None
            wrong += isinstance(row["error"], str)
            rows.append(row)
            cells = "".join(f"{row[k]:9.4f}" if k in row else f"{'-':>9}" for k in ("ours", "torch", "compile", "jax", "cuda"))
            ratios = "".join(f"{row[k]:11.2f}" if row[k] else f"{'-':>11}" for k in ("best_over_ours", "limit_over_ours"))
            print(f"{name:30}{cells}{ratios}{'  WRONG: ' + row['error'] if isinstance(row['error'], str) else ''}", flush=True)
    ratios = [row["best_over_ours"] for row in rows if row["best_over_ours"]]
    if ratios:
        print(f"best peer over ours: geomean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}, "
              f"{sum(r < 0.5 for r in ratios)} under 0.5; {wrong} of {len(rows)} wrong")
    if options.json:
        record = {"date": time.strftime("%Y-%m-%d"), "device": torch.cuda.get_device_name(), "torch": torch.__version__,
                  "copy_bytes_per_second": limit, "small": options.small, "milliseconds": rows}
        results_file.write(options.json, record)
    return 1 if wrong else 0


def usable():
    """False after an access out of bounds, which ends a process's work on the device for good."""
    try:
        torch.cuda.synchronize()
        return True
    except RuntimeError:
        return False


def measure(name, entry, arguments, by_torch, library, peers, by_jax):
    ours = library.arguments(arguments)
    slots = library.call(ours)
    got = library.values(slots)
    library.release(slots)
    row = {"name": name, "entry": entry, "error": 0.0}
    if by_torch:
        # In f64 where it fits: in order, sums of f32 of this length lose digits.
        small_enough = sum(a.numel() for a in arguments if isinstance(a, torch.Tensor)) <= 1 << 28
        expected = by_torch(*(map(in_f64, arguments) if small_enough and entry not in ("argmax", "kept") else arguments))
        expected = expected if isinstance(expected, tuple) else (expected,)
        error = compare(name, got, expected)
        row["error"] = error if isinstance(error, str) or error < 2e-3 else f"differs by {error:.2g} of the largest"
        del expected
    sizes = [value.numel() for value in got]
    del got

    def once():
        library.release(library.call(ours))

    row["ours"] = milliseconds(once, options.seconds)
    library.forget()
    if by_torch:
        row["torch"] = milliseconds(lambda: by_torch(*arguments), options.seconds)
        if options.compile and entry in COMPILED:
            try:
                compiled = torch.compile(by_torch, dynamic=False)
                row["compile"] = milliseconds(lambda: compiled(*arguments), options.seconds)
            except Exception as error:  # whatever its compiler raises: a peer that cannot is no failure of ours
                print(f"{name}: torch.compile: {str(error)[:100]}")
    if entry == "attention":
        row["torch"] = min(row["torch"], milliseconds(
            lambda: torch.nn.functional.scaled_dot_product_attention(*(a[None] for a in arguments))))
    if entry in by_jax:
        import jax
        values = [jax.dlpack.from_dlpack(value) for value in arguments if isinstance(value, torch.Tensor)]
        last = []

        def call():
            last[:] = [by_jax[entry](*values)]

        row["jax"] = milliseconds(call, options.seconds, lambda: jax.block_until_ready(last[0]))
        del values
    if peers is not None:
        call = cuda_call(peers, entry, arguments, sizes)
        if call:
            row["cuda"] = milliseconds(call, options.seconds)
    return row


def copy_rate():
    x = torch.empty((1 << 28) // S, device=device)
    y = torch.empty_like(x)
    return 8 * x.numel() / milliseconds(lambda: y.copy_(x)) * 1e3


if __name__ == "__main__":
    sys.exit(main())
