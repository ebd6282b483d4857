#!/usr/bin/env python3
"""Array programs that are no contractions on this machine's cores, beside NumPy, numba, JAX, torch and loops in C.

    bench/programs_cpu.py APLC [--threads N] [--small] [--only NAME,...] [--seconds S] [--passes N] [--json FILE]

Programs are bench/programs_cpu.fut as one C library, in one process with the peers; the loops are bench/programs_cpu.c.
Ours and the peers' calls take turns, round after round, in several passes over all programs, and times are the least of
all, in milliseconds, since other work may be on the machine. All results are compared with NumPy's. A library that is not installed is left out. Exit status 0
only if every result is right.
"""
import argparse
import ctypes
import math
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("aplc")
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--small", action="store_true", help="a sixteenth of the elements")
parser.add_argument("--only", default="")
parser.add_argument("--seconds", type=float, default=1.0, help="for each program")
parser.add_argument("--passes", type=int, default=1, help="over all programs")
parser.add_argument("--json")
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = str(options.threads)
# Pools of several libraries share the cores: who waits must not be in the way of who works.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ["JAX_PLATFORMS"] = "cpu"  # beside a GPU, too
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])

import numpy as np  # after the numbers of threads

import results_file

try:
    import numba
except ImportError:
    numba = None
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None
try:
    import torch
    torch.set_num_threads(options.threads)
except ImportError:
    torch = None

PROGRAM = pathlib.Path(__file__).with_suffix(".fut")
LOOPS = pathlib.Path(__file__).with_suffix(".c")
SCALE = 16 if options.small else 1
rng = np.random.default_rng(1)


def f32(*shape):
    return rng.uniform(0.1, 2, shape).astype(np.float32)


def i32(below, *shape):
    return rng.integers(0, below, shape).astype(np.int32)


def parallel(function):
    return numba.njit(function, parallel=options.threads > 1, fastmath=True, error_model="numpy")


def numba_functions():
    """Loops as one writes them, in which numba may order sums anew."""
    def sum(xs):
        s = np.float32(0)
        for i in numba.prange(xs.size):
            s += xs[i]
        return s

    def dot(xs, ys):
        s = np.float32(0)
        for i in numba.prange(xs.size):
            s += xs[i] * ys[i]
        return s

    def chain(xs):
        out = np.empty_like(xs)
        for i in numba.prange(xs.size):
            out[i] = np.exp(np.sqrt(xs[i]) * np.float32(0.5) - np.float32(1))
        return out

    def counts(k, keys):
        out = np.zeros(k, np.int32)
        for i in range(keys.size):
            out[keys[i]] += 1
        return out

    def softmax(xss):
        out = np.empty_like(xss)
        for i in numba.prange(xss.shape[0]):
            most = np.float32(-np.inf)
            for j in range(xss.shape[1]):
                most = max(most, xss[i, j])
            total = np.float32(0)
            for j in range(xss.shape[1]):
                out[i, j] = np.exp(xss[i, j] - most)
                total += out[i, j]
            for j in range(xss.shape[1]):
                out[i, j] /= total
        return out

    def bodies(xs, ys, zs, ms):
        ax, ay, az = np.empty_like(xs), np.empty_like(xs), np.empty_like(xs)
        for i in numba.prange(xs.size):
            a = b = c = np.float32(0)
            for j in range(xs.size):
                dx, dy, dz = xs[j] - xs[i], ys[j] - ys[i], zs[j] - zs[i]
                inverse = np.float32(1) / np.sqrt(dx * dx + dy * dy + dz * dz + np.float32(0.01))
                s = ms[j] * inverse * inverse * inverse
                a += s * dx
                b += s * dy
                c += s * dz
            ax[i], ay[i], az[i] = a, b, c
        return ax, ay, az

    def heat(steps, start):
        u = start.copy()
        v = start.copy()
        for _ in range(steps):
            for i in numba.prange(1, u.shape[0] - 1):
                for j in range(1, u.shape[1] - 1):
                    v[i, j] = u[i, j] + np.float32(0.1) * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] -
                                                           np.float32(4) * u[i, j])
            u, v = v, u
        return u

    def window(xss, w):
        n, m = xss.shape[0] - w.shape[0] + 1, xss.shape[1] - w.shape[1] + 1
        out = np.zeros((n, m), np.float32)
        for i in numba.prange(n):
            for a in range(w.shape[0]):
                for b in range(w.shape[1]):
                    for j in range(m):
                        out[i, j] += xss[i + a, j + b] * w[a, b]
        return out

    def paths(edges):
        d = edges.copy()
        n = d.shape[0]
        for k in range(n):
            for i in numba.prange(n):
                for j in range(n):
                    d[i, j] = min(d[i, j], d[i, k] + d[k, j])
        return d

    def mandelbrot(side, limit):
        out = np.empty((side, side), np.int32)
        for i in numba.prange(side):
            for j in range(side):
                x = np.float32(j) / np.float32(side) * np.float32(3) - np.float32(2)
                y = np.float32(i) / np.float32(side) * np.float32(3) - np.float32(1.5)
                a = b = np.float32(0)
                steps = 0
                while steps < limit and a * a + b * b < np.float32(4):
                    a, b = a * a - b * b + x, np.float32(2) * a * b + y
                    steps += 1
                out[i, j] = steps
        return out

    def lu(matrix):
        a = matrix.copy()
        n = a.shape[0]
        for k in range(n - 1):
            for i in numba.prange(k + 1, n):
                a[i, k] /= a[k, k]
                for j in range(k + 1, n):
                    a[i, j] -= a[i, k] * a[k, j]
        return a

    return {"mandelbrot": mandelbrot, "lu": lu, "sum": sum, "dot": dot, "chain": chain, "counts": counts, "softmax": softmax, "bodies": bodies, "heat": heat,
            "window_3": window, "window_7": window, "paths": paths}


def np_softmax(xss):
    es = np.exp(xss - xss.max(axis=1, keepdims=True))
    return es / es.sum(axis=1, keepdims=True)


def layernorm(np_, xss):
    mean = xss.mean(axis=1, keepdims=True)
    centred = xss - mean
    return centred / np_.sqrt((centred * centred).mean(axis=1, keepdims=True) + np.float32(1e-5))


def black_scholes(np_, s, x, t):
    def distribution(d):
        k = 1 / (1 + np.float32(0.2316419) * np_.abs(d))
        polynomial = k * (np.float32(0.31938153) + k * (np.float32(-0.356563782) + k * (np.float32(1.781477937) + k * (
            np.float32(-1.821255978) + k * np.float32(1.330274429)))))
        tail = np.float32(0.39894228) * np_.exp(np.float32(-0.5) * d * d) * polynomial
        return np_.where(d > 0, 1 - tail, tail)
    v, r = np.float32(0.3), np.float32(0.02)
    root = np_.sqrt(t)
    d1 = (np_.log(s / x) + (r + np.float32(0.5) * v * v) * t) / (v * root)
    c1, c2 = distribution(d1), distribution(d1 - v * root)
    discounted = x * np_.exp(-r * t)
    return s * c1 - discounted * c2, discounted * (1 - c2) - s * (1 - c1)


def np_bodies(xs, ys, zs, ms):
    out = []
    for block in np.array_split(np.arange(xs.size), max(1, xs.size // 256)):
        d = [p[None, :] - p[block, None] for p in (xs, ys, zs)]
        s = ms / np.sqrt(d[0] ** 2 + d[1] ** 2 + d[2] ** 2 + np.float32(0.01)) ** 3
        out.append([(s * c).sum(axis=1) for c in d])
    return tuple(np.concatenate(part) for part in zip(*out))


def np_heat(steps, start):
    u = start.copy()
    for _ in range(steps):
        v = u.copy()
        v[1:-1, 1:-1] += np.float32(0.1) * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] -
                                            np.float32(4) * u[1:-1, 1:-1])
        u = v
    return u


def np_window(xss, w):
    n, m = xss.shape[0] - w.shape[0] + 1, xss.shape[1] - w.shape[1] + 1
    out = np.zeros((n, m), np.float32)
    for a in range(w.shape[0]):
        for b in range(w.shape[1]):
            out += xss[a:a + n, b:b + m] * w[a, b]
    return out


def np_paths(edges):
    d = edges.copy()
    for k in range(d.shape[0]):
        np.minimum(d, d[:, k, None] + d[None, k], out=d)
    return d


def np_mandelbrot(side, limit):
    x = np.arange(side, dtype=np.float32) / np.float32(side) * np.float32(3)
    x, y = np.meshgrid(x - np.float32(2), x - np.float32(1.5))
    a, b, steps = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, np.int32)
    for _ in range(limit):
        inside = a * a + b * b < 4
        if not inside.any():
            break
        steps += inside
        a, b = np.where(inside, a * a - b * b + x, a), np.where(inside, np.float32(2) * a * b + y, b)
    return steps


def kmeans_step(points, centres):
    distances = (centres * centres).sum(1) - np.float32(2) * (points @ centres.T)
    which = distances.argmin(1)
    sums = np.stack([np.bincount(which, points[:, d], len(centres)) for d in range(points.shape[1])], axis=1)
    return (sums / np.maximum(1, np.bincount(which, minlength=len(centres)))[:, None]).astype(np.float32)


def np_lu(matrix):
    a = matrix.copy()
    for k in range(len(a) - 1):
        a[k + 1:, k] /= a[k, k]
        a[k + 1:, k + 1:] -= a[k + 1:, k, None] * a[k, None, k + 1:]
    return a


def np_attention(q, k, v):
    return np_softmax((q @ k.transpose(0, 2, 1) / np.float32(math.sqrt(q.shape[2]))).reshape(-1, k.shape[1])).reshape(
        q.shape[0], q.shape[1], -1) @ v


def parts(complex_values):
    return complex_values.real, complex_values.imag


def torch_black_scholes(s, x, t):
    class Module:
        abs, exp, log, sqrt, where = torch.abs, torch.exp, torch.log, torch.sqrt, torch.where
    return black_scholes(Module, s, x, t)


def conv(x, w):
    return torch.nn.functional.conv2d(x[None, None], w[None, None])[0, 0]


n = (1 << 22) // SCALE
side = 2048 // int(math.isqrt(SCALE))
diagonal = 256 // int(math.isqrt(SCALE))
points = 1 << 15 if SCALE == 1 else 1 << 12
# Name: arguments, NumPy's way, JAX's and torch's (None: not to be said in it, or another algorithm), shapes of C's results
# with those of arrays that it works in.
CASES = {
    "sum": ([f32(n)], np.sum, lambda xs: jnp.sum(xs), lambda xs: xs.sum(), None),
    "dot": ([f32(n), f32(n)], np.dot, lambda xs, ys: jnp.dot(xs, ys), lambda xs, ys: torch.dot(xs, ys), None),
    "argmax": ([f32(n)], np.argmax, lambda xs: jnp.argmax(xs), lambda xs: xs.argmax(), None),
    "prefix_sums": ([f32(n)], lambda xs: np.cumsum(xs, dtype=np.float32), lambda xs: jnp.cumsum(xs),
                    lambda xs: xs.cumsum(0), [n]),
    "chain": ([f32(n)], lambda xs: np.exp(np.sqrt(xs) * np.float32(0.5) - np.float32(1)),
              lambda xs: jnp.exp(jnp.sqrt(xs) * 0.5 - 1), lambda xs: torch.exp(torch.sqrt(xs) * 0.5 - 1), [n]),
    "even": ([i32(1 << 30, n)], lambda xs: xs[xs % 2 == 0], None, lambda xs: xs[xs % 2 == 0], [n]),
    "counts_4096": ([np.int64(4096), i32(4096, n)], lambda k, keys: np.bincount(keys, minlength=k).astype(np.int32),
                    lambda k, keys: jnp.zeros(4096, jnp.int32).at[keys].add(1),
                    lambda k, keys: torch.bincount(keys, minlength=4096), [4096]),
    "counts_2^20": ([np.int64(1 << 20), i32(1 << 20, n)], lambda k, keys: np.bincount(keys, minlength=k).astype(np.int32),
                    None, lambda k, keys: torch.bincount(keys, minlength=1 << 20), [1 << 20]),
    "rows": ([f32(n // 256, 256)], lambda x: x.sum(axis=1), lambda x: x.sum(axis=1), lambda x: x.sum(1), [n // 256]),
    "columns": ([f32(n // 256, 256)], lambda x: x.sum(axis=0), lambda x: x.sum(axis=0), lambda x: x.sum(0), [256]),
    "turned": ([f32(side, side)], lambda x: np.ascontiguousarray(x.T), lambda x: x.T.copy(), lambda x: x.T.contiguous(),
               [n]),
    "reversed": ([f32(64 // SCALE, 256, 256)], lambda x: np.ascontiguousarray(x.T), lambda x: x.T.copy(),
                 lambda x: x.permute(2, 1, 0).contiguous(), [n]),
    "softmax": ([f32(n // 1024, 1024)], np_softmax, lambda x: jax.nn.softmax(x, axis=1), lambda x: x.softmax(1), [n]),
    "layernorm": ([f32(n // 1024, 1024)], lambda x: layernorm(np, x), lambda x: layernorm(jnp, x),
                  lambda x: torch.nn.functional.layer_norm(x, (1024,)), [n]),
    "black_scholes": ([f32(n // 16), f32(n // 16), f32(n // 16)], lambda *a: black_scholes(np, *a),
                      lambda *a: black_scholes(jnp, *a), torch_black_scholes, [n // 16] * 2),
    "bodies": ([f32(2048 // SCALE) for _ in range(4)], np_bodies, None, None, [2048 // SCALE] * 3),
    "heat": ([np.int32(10), f32(side // 2, side // 2)], np_heat, None, None, [n // 4] * 2),
    "window_3": ([f32(side, side), f32(3, 3)], np_window,
                 lambda x, w: jax.lax.conv(x[None, None], w[None, None], (1, 1), "VALID")[0, 0], conv,
                 [(side - 2) ** 2]),
    "window_7": ([f32(side // 2, side // 2), f32(7, 7)], np_window,
                 lambda x, w: jax.lax.conv(x[None, None], w[None, None], (1, 1), "VALID")[0, 0], conv,
                 [(side // 2 - 6) ** 2]),
    "mandelbrot": ([np.int64(diagonal), np.int32(255)], np_mandelbrot, None, None, [diagonal ** 2]),
    "kmeans": ([f32(points, 16), f32(64, 16)], kmeans_step, None, None, [64 * 16]),
    "paths": ([f32(diagonal, diagonal)], np_paths, None, None, [diagonal ** 2]),
    "small_products": ([f32(n // 32, 4, 4), f32(n // 32, 4, 4)], lambda x, y: x @ y, lambda x, y: x @ y,
                       lambda x, y: x @ y, [n // 2]),
    "lu": ([f32(diagonal, diagonal) + np.float32(diagonal) * np.eye(diagonal, dtype=np.float32)], np_lu, None,
           lambda x: torch.linalg.lu_factor_ex(x, pivot=False)[0] if x.is_cuda else torch.linalg.lu_factor(x)[0],
           [diagonal ** 2]),
    "sorted": ([i32(1 << 31, n // 8)], np.sort, lambda xs: jnp.sort(xs), lambda xs: xs.sort()[0], [n // 8] * 2),
    "fft": ([np.int32((n // 64).bit_length() - 1), f32(n // 64), f32(n // 64)],
            lambda _, re, im: parts(np.fft.fft((re + 1j * im).astype(np.complex64))), None,
            lambda _, re, im: torch.fft.fft(torch.complex(re, im)), [n // 64] * 4),
    "attention": ([f32(4 if SCALE == 1 else 1, 256, 64) for _ in range(3)], np_attention, None,
                  lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
                  [(4 if SCALE == 1 else 1) * 256 * 64]),
}
TYPES = {np.dtype("f4"): ("f32", ctypes.c_float), np.dtype("i4"): ("i32", ctypes.c_int32),
         np.dtype("i8"): ("i64", ctypes.c_int64)}
SCALAR_RESULTS = {"sum": np.dtype("f4"), "dot": np.dtype("f4"), "argmax": np.dtype("i8")}
ARGUMENT_OF_C = {"heat": lambda steps, u: [steps, *u.shape, u], "counts_4096": lambda k, keys: [k, keys.size, keys],
                 "counts_2^20": lambda k, keys: [k, keys.size, keys], "kmeans": lambda p, c: [*p.shape, len(c), p, c],
                 "mandelbrot": lambda *a: list(a), "fft": lambda _, re, im: [re.size, re, im],
                 "paths": lambda d: [len(d), d], "lu": lambda a: [len(a), a], "small_products": lambda x, y: [len(x), x, y],
                 "attention": lambda q, k, v: [*q.shape, q, k, v], "window_3": lambda x, w: [*x.shape, x, w],
                 "window_7": lambda x, w: [*x.shape, x, w]}


def c_value(value):
    if np.ndim(value):
        return ctypes.c_void_p(value.ctypes.data)
    return TYPES[np.asarray(value).dtype][1](value) if isinstance(value, np.generic) else ctypes.c_int64(value)


class Library:
    """The programs, each call of which makes and frees its results."""

    def __init__(self, folder):
        subprocess.run([options.aplc, "c", "--library", "-o", folder / "programs", PROGRAM], check=True)
        subprocess.run(["cc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-w", "-o", folder / "programs.so",
                        folder / "programs.c", "-lm"], check=True)
        self.c = ctypes.CDLL(str(folder / "programs.so"))
        for function in ("context_config_new", "context_new", "context_get_error"):
            getattr(self.c, f"futhark_{function}").restype = ctypes.c_void_p
        self.context = ctypes.c_void_p(self.c.futhark_context_new(ctypes.c_void_p(self.c.futhark_context_config_new())))

    def checked(self, status):
        if status:
            message = self.c.futhark_context_get_error(self.context)
            raise RuntimeError(ctypes.string_at(message).decode() if message else str(status))

    def arguments(self, values):
        out = []
        for value in values:
            if not np.ndim(value):
                out.append(c_value(value))
                continue
            make = getattr(self.c, f"futhark_new_{TYPES[value.dtype][0]}_{value.ndim}d")
            make.restype = ctypes.c_void_p
            out.append(ctypes.c_void_p(make(self.context, c_value(value), *map(ctypes.c_int64, value.shape))))
        return out

    def caller(self, entry, expected, arguments):
        """A function that calls and frees, and one that gives the results of a call."""
        function, context = getattr(self.c, f"futhark_entry_{entry}"), self.context
        if entry in SCALAR_RESULTS:
            scalar = TYPES[SCALAR_RESULTS[entry]][1]()
            at = ctypes.byref(scalar)

            def results():
                self.checked(function(context, at, *arguments))
                return (np.asarray(scalar.value),)
            return lambda: function(context, at, *arguments), results
        names = [f"{TYPES[np.dtype(e.dtype)][0]}_{e.ndim}d" for e in expected]
        result = ctypes.c_void_p()
        at = ctypes.byref(result)
        opaque = f"opaque_tup{len(names)}_" + "_".join(f"arr{e.ndim}d_{TYPES[np.dtype(e.dtype)][0]}" for e in expected)
        free = getattr(self.c, f"futhark_free_{names[0] if len(names) == 1 else opaque}")

        def call():
            function(context, at, *arguments)
            free(context, result)

        def results():
            self.checked(function(context, at, *arguments))
            out = []
            for k, name in enumerate(names):
                part = result
                if len(names) > 1:
                    part = ctypes.c_void_p()
                    self.checked(getattr(self.c, f"futhark_project_{opaque}_{k}")(context, ctypes.byref(part), result))
                shape = getattr(self.c, f"futhark_shape_{name}")
                shape.restype = ctypes.POINTER(ctypes.c_int64)
                values = np.empty([shape(context, part)[d] for d in range(expected[k].ndim)], expected[k].dtype)
                self.checked(getattr(self.c, f"futhark_values_{name}")(context, part, c_value(values)))
                out.append(values)
            free(context, result)
            return tuple(out)
        return call, results


def loops_in_c(folder):
    # Functions of the vector library are taken with fast maths only.
    subprocess.run(["cc", "-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC", "-o", folder / "loops.so",
                    LOOPS, "-lm"], check=True)
    return ctypes.CDLL(str(folder / "loops.so"))


def c_caller(loops, name, arguments, sizes):
    function = getattr(loops, "c_" + name.split("_")[0] if name.startswith("counts") else "c_" + name)
    given = ARGUMENT_OF_C.get(name, lambda *a: [*a[0].shape, *a])(*arguments)
    given = [c_value(value) for value in given]
    if name in SCALAR_RESULTS:
        function.restype = TYPES[SCALAR_RESULTS[name]][1]
        return lambda: (np.asarray(function(*given)),)
    function.restype = ctypes.c_int64 if name == "even" else None
    integers = name in ("even", "sorted", "mandelbrot") or name.startswith("counts")
    outputs = [np.zeros(size, np.int32 if integers else np.float32) for size in sizes]
    given += [c_value(output) for output in outputs]

    def call():
        count = function(*given)
        return tuple(output[:count] for output in outputs)
    return call


def same(got, expected, apart=0):
    """Whether all but that share of the elements are the same, but for rounding."""
    return len(got) == len(expected) and all(
        np.shape(g) == np.shape(e) and
        np.mean(~np.isclose(g, e, rtol=2e-3, atol=1e-4 * float(np.max(np.abs(e), initial=0)))) <= apart
        for g, e in zip(got, expected))


def take_turns(calls):
    """The least milliseconds of each call: rounds of several short calls of each."""
    best, share = dict.fromkeys(calls, math.inf), {}
    for who, call in calls.items():
        call()
        start = time.perf_counter()
        call()
        share[who] = max(1, min(50, int(0.01 / max(1e-6, time.perf_counter() - start))))
    begin, rounds = time.monotonic(), 0
    while rounds < 3 or time.monotonic() - begin < options.seconds:
        for who, call in calls.items():
            for _ in range(share[who]):
                start = time.perf_counter()
                call()
                best[who] = min(best[who], time.perf_counter() - start)
        rounds += 1
    return {who: seconds * 1e3 for who, seconds in best.items()}


def main():
    wanted = [name for name in CASES if not options.only or name in options.only.split(",")]
    compiled = {name: parallel(f) for name, f in numba_functions().items()} if numba else {}
    results, wrong = [], 0
    print(f"{'':14}" + "".join(f"{who:>9}" for who in ("ours", *PEERS)) +
          f"   best peer over ours   (ms, {options.threads} threads)")
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        library, loops = Library(folder), loops_in_c(folder)
        all_calls = {}
        for name in wanted:
            arguments, by_numpy, by_jax, by_torch, sizes = CASES[name]
            expected = by_numpy(*arguments)
            expected = tuple(map(np.asarray, expected if isinstance(expected, tuple) else (expected,)))
            call, values = library.caller(name.split("_")[0] if name.startswith("counts") else name, expected,
                                          library.arguments(arguments))
            right = same(values(), expected)
            calls = {"ours": call, "numpy": lambda f=by_numpy, a=arguments: f(*a)}
            calls["c"] = c_caller(loops, name, arguments, sizes)
            in_c = calls["c"]()[:len(expected)]
            # With fast maths points at the rim of a fractal take another number of steps.
            if not same([np.reshape(g, e.shape) if g.size == e.size else g for g, e in zip(in_c, expected)], expected,
                        0.01 if name == "mandelbrot" else 0):
                print(name, "C's loops give another result")
                wrong += 1
            numba_name = "counts" if name.startswith("counts") else name
            if numba_name in compiled:
                calls["numba"] = lambda f=compiled[numba_name], a=arguments: f(*a)
            if jax and by_jax:
                on_device = [jax.device_put(a) if np.ndim(a) else a for a in arguments]
                program = jax.jit(by_jax, static_argnums=(0,) if name.startswith("counts") else ())
                given = [int(a) if not np.ndim(a) else a for a in on_device]
                calls["jax"] = lambda f=program, a=given: jax.block_until_ready(f(*a))
            if torch and by_torch:
                tensors = [torch.from_numpy(a) if np.ndim(a) else a for a in arguments]
                calls["torch"] = lambda f=by_torch, a=tensors: f(*a)
            wrong += not right
            all_calls[name] = calls, right
        least = {name: dict.fromkeys(calls, math.inf) for name, (calls, _) in all_calls.items()}
        for _ in range(options.passes):
            for name, (calls, _) in all_calls.items():
                least[name] = {who: min(least[name][who], time) for who, time in take_turns(calls).items()}
        for name, (_, right) in all_calls.items():
            times = least[name]
            ours = times.pop("ours")
            best = min(times.values())
            results.append({"name": name, "ours_ms": ours, "peers_ms": times, "best_over_ours": best / ours,
                            "right": bool(right)})
            cells = "".join(f"{times[peer]:9.3f}" if peer in times else f"{'-':>9}" for peer in PEERS)
            print(f"{name:14}{ours:9.3f}{cells}   {best / ours:6.2f}{'' if right else '  WRONG'}", flush=True)
    if results:
        ratios = [r["best_over_ours"] for r in results]
        print(f"geomean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, worst {min(ratios):.2f}, {wrong} wrong")
    if options.json:
        record = {"date": time.strftime("%Y-%m-%d"), "machine": machine(), "threads": options.threads,
                  "small": options.small, "peers": versions(), "cases": results}
        results_file.write(options.json, record)
    return 1 if wrong else 0


PEERS = ("numpy", "c", "numba", "jax", "torch")


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def versions():
    compiler = subprocess.run(["cc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return {"numpy": np.__version__, "cc": compiler} | {m.__name__: m.__version__ for m in (numba, jax, torch) if m}


sys.exit(main())
