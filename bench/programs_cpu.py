#!/usr/bin/env python3
"""Array programs that are no contractions on this machine's cores, beside NumPy, numba and JAX in one run.

    bench/programs_cpu.py APLC [--threads N] [--small] [--only NAME,...] [--json FILE]

Programs are bench/programs_cpu.fut. Results are compared with NumPy's. Times are the least of several repetitions, in
milliseconds, since other work may be on the machine; JAX and numba compile before the first. A library that is not
installed is left out. With --threads=1 all run on one core. Exit status 0 only if every result is right.
"""
import argparse
import json
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
parser.add_argument("--small", action="store_true")
parser.add_argument("--only", default="")
parser.add_argument("--seconds", type=float, default=1.0)
parser.add_argument("--json")
options = parser.parse_args()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = str(options.threads)
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.threads])

import numpy as np  # after the numbers of threads

try:
    import numba
except ImportError:
    numba = None
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

PROGRAM = pathlib.Path(__file__).with_suffix(".fut")
SCALE = 16 if options.small else 1
rng = np.random.default_rng(1)


def f32(*shape):
    return rng.uniform(0.1, 2, shape).astype(np.float32)


def i32(below, *shape):
    return rng.integers(0, below, shape).astype(np.int32)


def parallel(function):
    return numba.njit(function, parallel=options.threads > 1, fastmath=True, error_model="numpy")


def each(count):
    return numba.prange(count) if numba else range(count)


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

    return {"sum": sum, "dot": dot, "chain": chain, "counts": counts, "softmax": softmax, "bodies": bodies, "heat": heat,
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


n = (1 << 24) // SCALE
side = 4096 // int(math.isqrt(SCALE))
# Name: arguments, NumPy's way, JAX's way (None: as NumPy's is not to be said in it).
CASES = {
    "sum": ([f32(n)], np.sum, lambda xs: jnp.sum(xs)),
    "dot": ([f32(n), f32(n)], np.dot, lambda xs, ys: jnp.dot(xs, ys)),
    "argmax": ([f32(n)], np.argmax, lambda xs: jnp.argmax(xs)),
    "prefix_sums": ([f32(n)], lambda xs: np.cumsum(xs, dtype=np.float32), lambda xs: jnp.cumsum(xs)),
    "chain": ([f32(n)], lambda xs: np.exp(np.sqrt(xs) * np.float32(0.5) - np.float32(1)),
              lambda xs: jnp.exp(jnp.sqrt(xs) * 0.5 - 1)),
    "even": ([i32(1 << 30, n)], lambda xs: xs[xs % 2 == 0], None),
    "counts": ([np.int64(4096), i32(4096, n)], lambda k, keys: np.bincount(keys, minlength=k).astype(np.int32),
               lambda k, keys: jnp.zeros(4096, jnp.int32).at[keys].add(1)),
    "rows": ([f32(n // 256, 256)], lambda x: x.sum(axis=1), lambda x: x.sum(axis=1)),
    "columns": ([f32(n // 256, 256)], lambda x: x.sum(axis=0), lambda x: x.sum(axis=0)),
    "turned": ([f32(side, side)], lambda x: np.ascontiguousarray(x.T), lambda x: x.T.copy()),
    "reversed": ([f32(256 // SCALE, 256, 256)], lambda x: np.ascontiguousarray(x.T), lambda x: x.T.copy()),
    "softmax": ([f32(n // 1024, 1024)], np_softmax, lambda x: jax.nn.softmax(x, axis=1)),
    "layernorm": ([f32(n // 1024, 1024)], lambda x: layernorm(np, x), lambda x: layernorm(jnp, x)),
    "black_scholes": ([f32(n // 4), f32(n // 4), f32(n // 4)], lambda *a: black_scholes(np, *a),
                      lambda *a: black_scholes(jnp, *a)),
    "bodies": ([f32(8192 // SCALE) for _ in range(4)], np_bodies, None),
    "heat": ([np.int32(10), f32(side // 2, side // 2)], np_heat, None),
    "window_3": ([f32(side // 2, side // 2), f32(3, 3)], np_window,
                 lambda x, w: jax.lax.conv(x[None, None], w[None, None], (1, 1), "VALID")[0, 0]),
    "window_7": ([f32(side // 2, side // 2), f32(7, 7)], np_window,
                 lambda x, w: jax.lax.conv(x[None, None], w[None, None], (1, 1), "VALID")[0, 0]),
    "paths": ([f32(512 // SCALE, 512 // SCALE)], np_paths, None),
}
TYPES = {"float32": " f32", "int32": " i32", "int64": " i64"}


def write(value, path):
    value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
    path.write_bytes(b"b" + bytes([2, value.ndim]) + TYPES[str(value.dtype)].encode() +
                     np.asarray(value.shape, np.int64).tobytes() + value.tobytes())


def read(data):
    kinds, found, at = {v.encode(): np.dtype(k) for k, v in TYPES.items()}, [], 0
    while at < len(data):
        rank, kind = data[at + 2], kinds[data[at + 3:at + 7]]
        shape = np.frombuffer(data, np.int64, rank, at + 7)
        at += 7 + 8 * rank
        count = int(np.prod(shape))
        found.append(np.frombuffer(data, kind, count, at).reshape(shape))
        at += count * kind.itemsize
    return found


def least(call):
    """Milliseconds, after one call to warm up."""
    call()
    best, begin, count = math.inf, time.monotonic(), 0
    while count < 3 or (time.monotonic() - begin < options.seconds and count < 200):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
        count += 1
    return best * 1e3


def ours(name, arguments, folder):
    names = []
    for k, value in enumerate(arguments):
        write(value, folder / f"{name}.{k}")
        names.append(folder / f"{name}.{k}")
    run = subprocess.run([options.aplc, "run", "-b", "-e", name, PROGRAM] + [f"@{path}" for path in names], check=True,
                         capture_output=True)
    # Each file is a case of a test block, as `aplc bench` wants its inputs.
    blocks, source = folder / f"{name}.spec", f"==\nentry: {name}\ncompiled input @ {folder / name}.in\n"
    (folder / f"{name}.in").write_bytes(b"".join(path.read_bytes() for path in names))
    blocks.write_text(source)
    times = folder / f"{name}.json"
    subprocess.run([options.aplc, "bench", "--spec-file", blocks, "--no-convergence-phase", "-r", "10", "--json", times,
                    PROGRAM], check=True, capture_output=True)
    measured = json.loads(times.read_text())
    runs = next(iter(next(iter(measured.values()))["datasets"].values()))["runtimes"]
    return read(run.stdout), min(runs) / 1e3


def main():
    wanted = [name for name in CASES if not options.only or name in options.only.split(",")]
    compiled = {name: parallel(f) for name, f in numba_functions().items()} if numba else {}
    results, wrong = [], 0
    print(f"{'':14}{'ours':>9}{'NumPy':>9}{'numba':>9}{'JAX':>9}   best peer over ours   (ms, {options.threads} threads)")
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        for name in wanted:
            arguments, by_numpy, by_jax = CASES[name]
            expected = by_numpy(*arguments)
            expected = expected if isinstance(expected, tuple) else (expected,)
            try:
                got, time_of_ours = ours(name, arguments, folder)
            except subprocess.CalledProcessError as error:
                print(name, "failed:", error.stderr.decode()[-300:])
                wrong += 1
                continue
            right = all(np.shape(g) == np.shape(e) and np.allclose(g, e, rtol=2e-3, atol=1e-3 * float(np.max(np.abs(e), initial=0)) * 0.1)
                        for g, e in zip(got, expected)) and len(got) == len(expected)
            wrong += not right
            times = {"numpy": least(lambda: by_numpy(*arguments))}
            if name in compiled:
                times["numba"] = least(lambda: compiled[name](*arguments))
            if jax and by_jax:
                on_device = [jax.device_put(a) if np.ndim(a) else a for a in arguments]
                call = jax.jit(by_jax, static_argnums=(0,) if name == "counts" else ())
                times["jax"] = least(lambda: jax.block_until_ready(call(*(
                    [int(on_device[0])] + on_device[1:] if name == "counts" else on_device))))
            best = min(times.values())
            results.append({"name": name, "ours_ms": time_of_ours, "peers_ms": times, "best_over_ours": best / time_of_ours,
                            "right": bool(right)})
            cells = "".join(f"{times[peer]:9.2f}" if peer in times else f"{'-':>9}" for peer in ("numpy", "numba", "jax"))
            print(f"{name:14}{time_of_ours:9.2f}{cells}   {best / time_of_ours:6.2f}{'' if right else '  WRONG'}", flush=True)
    if results:
        ratios = [r["best_over_ours"] for r in results]
        print(f"geomean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, worst {min(ratios):.2f}, {wrong} wrong")
    if options.json:
        record = {"date": time.strftime("%Y-%m-%d"), "machine": platform.processor() or platform.machine(),
                  "threads": options.threads, "small": options.small, "cases": results}
        pathlib.Path(options.json).write_text(json.dumps(record, indent=1) + "\n")
    return 1 if wrong else 0


sys.exit(main())
