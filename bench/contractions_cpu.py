"""Times contractions on the CPU beside torch.einsum and numpy.einsum, in one process, and writes a table and JSON.

Each case is a Futhark program that aplc compiles to a C library (`aplc c --library`), which is compiled with
`cc -O3 -march=native -fopenmp` and called with arrays that lie in its own memory. All results are compared with those of
torch. Times are medians of calls in milliseconds; `threads` is the number that OpenMP and the peers may use. What the cores
reach at best (aplc/calibrate/host_peaks.c) is measured before and after. `--operators` times products of other operators beside plain
loops in C instead.
"""
import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import results_file



def program(result, left, right, kind, operand=None):
    """A program that computes an einsum of two operands by nested maps around one sum. Operands of another type than `kind`
    are converted where they are read."""
    names = sorted(set(left + right))
    sums = [c for c in left + right if c not in result]
    sums = list(dict.fromkeys(sums))

    def shape(dims):
        return "".join(f"[s{c}]" for c in dims)

    def read(array, dims):
        element = f"{array}[{', '.join('i_' + c for c in dims)}]"
        return f"{kind}.{operand} {element}" if operand else element

    body = f"{read('A', left)} * {read('B', right)}"
    for c in reversed(sums):
        body = f"{kind}.sum (tabulate s{c} (\\i_{c} -> {body}))"
    for c in reversed(result):
        body = f"tabulate s{c} (\\i_{c} -> {body})"
    sizes = " ".join(f"[s{c}]" for c in names)
    return (f"entry main {sizes} (A: {shape(left)}{operand or kind}) (B: {shape(right)}{operand or kind}) : "
            f"{shape(result)}{kind} =\n  {body}\n")


def generate(aplc, folder, name, text):
    """Writes NAME.fut and the library's NAME.c; the seconds that aplc took."""
    source = folder / f"{name}.fut"
    source.write_text(text, encoding="utf-8")
    begin = time.perf_counter()
    subprocess.run([aplc, "c", "--library", "-o", str(folder / name), str(source)], check=True)
    return time.perf_counter() - begin


class Library:
    """An entry of two arrays in a compiled library."""

    def __init__(self, folder, code, name, kind, ranks):
        begin = time.perf_counter()
        flags = os.environ.get("CFLAGS", "-O3 -march=native").split()
        subprocess.run([os.environ.get("CC", "cc"), *flags, "-fopenmp", "-shared", "-fPIC", "-w", "-o",
                        str(folder / f"{name}.so"), str(code / f"{name}.c"), "-lm"], check=True)
        self.cc_seconds = time.perf_counter() - begin
        self.code = ctypes.CDLL(str(folder / f"{name}.so"))
        self.code.futhark_context_config_new.restype = ctypes.c_void_p
        self.code.futhark_context_new.restype = ctypes.c_void_p
        self.code.futhark_context_new.argtypes = [ctypes.c_void_p]
        self.context = self.code.futhark_context_new(self.code.futhark_context_config_new())
        self.kind, self.ranks = kind, ranks

    def function(self, name, rank):
        return getattr(self.code, f"futhark_{name}_{self.kind}_{rank}d")

    def array(self, values, rank):
        make = self.function("new", rank)
        make.restype = ctypes.c_void_p
        return ctypes.c_void_p(make(ctypes.c_void_p(self.context), ctypes.c_void_p(values.ctypes.data),
                                    *[ctypes.c_int64(n) for n in values.shape]))

    def call(self, x, y):
        out = ctypes.c_void_p()
        status = self.code.futhark_entry_main(ctypes.c_void_p(self.context), ctypes.byref(out), x, y)
        self.code.futhark_context_sync(ctypes.c_void_p(self.context))
        if status != 0:
            raise RuntimeError(f"the entry failed with status {status}")
        return out

    def values(self, array, shape, kind):
        import numpy
        result = numpy.empty(shape, kind)
        self.function("values", self.ranks[2])(ctypes.c_void_p(self.context), array, ctypes.c_void_p(result.ctypes.data))
        self.code.futhark_context_sync(ctypes.c_void_p(self.context))
        return result

    def free(self, array, rank):
        self.function("free", rank)(ctypes.c_void_p(self.context), array)


# Operators in place of a product and a sum: type, program, C of a plain loop, NumPy, and arithmetic instructions that a pair
# of vectors takes with AVX-512: minima that heed NaN take a comparison and a blend beside them; products of 32 bits count as
# two.
OPERATORS = {
    "min_plus": ("f32", "f32.minimum", "{a} + {b}", "x = a + b; s = x < s ? x : s;", "INFINITY",
                 lambda numpy, a, b: (a[:, :, None] + b).min(1), 4),
    "max_times": ("f32", "f32.maximum", "{a} * {b}", "x = a * b; s = x > s ? x : s;", "-INFINITY",
                  lambda numpy, a, b: (a[:, :, None] * b).max(1), 4),
    "distance": ("f32", "f32.sum", "({a} - {b}) * ({a} - {b})", "x = a - b; s += x * x;", "0",
                 lambda numpy, a, b: ((a[:, :, None] - b) ** 2).sum(1), 2),
    "product_i32": ("i32", "i32.sum", "{a} * {b}", "s += a * b;", "0", lambda numpy, a, b: a @ b, 3),
}


def time_operators(arguments, folder, peak, size=1024):
    """Each operator on matrices of size by size: ours, a plain loop, and the share of what its instructions allow."""
    import numpy
    random = numpy.random.default_rng(1)
    results, wrong = {}, 0
    print(f"{'case':<14} {'ms':>9} {'plain ms':>9} {'ratio':>6} {'of its peak':>11}")
    for name, (kind, fold, pair, loop, neutral, expected, instructions) in OPERATORS.items():
        if arguments.only not in name:
            continue
        element = pair.format(a="A[i, q]", b="B[q, j]")
        seconds = generate(arguments.aplc, folder, name,
                           f"entry main [m][n][k] (A: [m][k]{kind}) (B: [k][n]{kind}) : [m][n]{kind} =\n"
                           f"  tabulate m (\\i -> tabulate n (\\j -> {fold} (tabulate k (\\q -> {element}))))\n")
        library = Library(folder, folder, name, kind, (2, 2, 2))
        c_type = "float" if kind == "f32" else "int"
        plain = folder / f"plain_{name}.c"
        # The order of loops that C compilers make vectors of.
        plain.write_text(
            f"#include <math.h>\nvoid plain(const {c_type} *A, const {c_type} *B, {c_type} *restrict C, long n) {{\n"
            "#pragma omp parallel for\nfor (long i = 0; i < n; ++i) {\n"
            f"for (long j = 0; j < n; ++j) C[i * n + j] = {neutral};\n"
            f"for (long q = 0; q < n; ++q) for (long j = 0; j < n; ++j) {{\n{c_type} x, s = C[i * n + j];\n"
            f"const {c_type} a = A[i * n + q], b = B[q * n + j]; (void)x;\n{loop}\nC[i * n + j] = s; }} }} }}\n",
            encoding="utf-8")
        subprocess.run(["cc", "-O3", "-march=native", "-fopenmp", "-fwrapv", "-shared", "-fPIC", "-o",
                        str(plain.with_suffix(".so")), str(plain)], check=True)
        call = ctypes.CDLL(str(plain.with_suffix(".so"))).plain
        x, y = (random.integers(-99, 99, (size, size)).astype(f"{'float' if kind == 'f32' else 'int'}32") for _ in "xy")
        out = numpy.empty_like(x)
        ours = [library.array(x, 2), library.array(y, 2)]
        mine = median_of(lambda: library.free(library.call(*ours), 2), arguments.seconds)
        peer = median_of(lambda: call(*(ctypes.c_void_p(v.ctypes.data) for v in (x, y, out)), ctypes.c_long(size)),
                         arguments.seconds)
        result = library.call(*ours)
        wrong += not numpy.array_equal(library.values(result, (size, size), x.dtype.name)[:8],
                                       expected(numpy, x[:8], y))
        # A fused product is one instruction and two operations.
        share = instructions * size**3 / mine / (peak / 2)
        results[name] = {"milliseconds": {"apl": 1e3 * mine, "plain": 1e3 * peer}, "plain_over_apl": peer / mine,
                         "instructions": instructions, "share_of_peak": share, "aplc_seconds": seconds,
                         "cc_seconds": library.cc_seconds}
        print(f"{name:<14} {1e3 * mine:9.3f} {1e3 * peer:9.3f} {peer / mine:6.2f} {share:11.2f}", flush=True)
    return results, wrong


def measured_peaks(folder, element):
    """Operations and bytes a second at best: fused products, a sum that only reads, a triad."""
    source = pathlib.Path(__file__).resolve().parent.parent / "aplc/calibrate/host_peaks.c"
    subprocess.run(["cc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-o", str(folder / "peaks.so"),
                    str(source)], check=True)
    code = ctypes.CDLL(str(folder / "peaks.so"))
    code.peak_of.restype = code.bytes_of.restype = ctypes.c_double
    return {"fma": code.peak_of(element), "read": code.bytes_of(1), "triad": code.bytes_of(3)}


def cases(root, most_bytes, element):
    """Name, result, left, right and sizes of each case; sizes of the larger ones are scaled down alike."""
    for n in (64, 128, 256, 512, 1000, 1024, 2048, 4096):
        yield f"nn_{n}", "mn", "mk", "kn", dict(m=n, n=n, k=n)
    for name, left, right in (("nt", "mk", "nk"), ("tn", "km", "kn"), ("tt", "km", "nk")):
        yield f"{name}_1024", "mn", left, right, dict(m=1024, n=1024, k=1024)
    for size in (250, 999, 2001):
        yield f"nn_{size}", "mn", "mk", "kn", dict(m=size, n=size, k=size)
    yield "bmm_512x128", "bmn", "bmk", "bkn", dict(b=512, m=128, n=128, k=128)
    for batch, size in ((1000000, 4), (200000, 8), (100000, 16), (20000, 32)):
        yield f"bmm_{size}", "bmn", "bmk", "bkn", dict(b=batch, m=size, n=size, k=size)
    yield "mv_rows", "m", "mk", "k", dict(m=8192, k=8192)
    yield "mv_columns", "m", "km", "k", dict(m=8192, k=8192)
    yield "tall_4", "mn", "mk", "kn", dict(m=200000, n=4, k=64)
    yield "tall_16", "mn", "mk", "kn", dict(m=200000, n=16, k=64)
    yield "wide_4", "mn", "mk", "kn", dict(m=4, n=200000, k=64)
    yield "few_results", "mn", "km", "kn", dict(m=64, n=64, k=200000)
    yield "scores_16x512", "hij", "hid", "hjd", dict(h=16, i=512, j=512, d=64)
    yield "context_16x512", "hid", "hij", "hjd", dict(h=16, i=512, j=512, d=64)
    for line in (root / "bench/tccg48.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        name, result, _, left, _, right, *sizes = line.split()
        values = {s.split("=")[0]: int(s.split("=")[1]) for s in sizes}

        def size_of(dims, scaled):
            total = element
            for c in dims:
                total *= scaled[c]
            return total

        scale = 1.0
        scaled = dict(values)
        while sum(size_of(d, scaled) for d in (result, left, right)) > most_bytes:
            scale *= 0.99
            scaled = {c: max(1, round(v * scale)) for c, v in values.items()}
        yield name, result, left, right, scaled


def median_of(call, seconds):
    call()
    times = []
    stop = time.perf_counter() + seconds
    while len(times) < 3 or (time.perf_counter() < stop and len(times) < 200):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


class Blas:
    """A BLAS with the C interface, for products of two matrices in any layout."""

    def __init__(self, file, kind):
        code = ctypes.CDLL(file)
        self.real = ctypes.c_float if kind == "float32" else ctypes.c_double
        self.product = code.cblas_sgemm if kind == "float32" else code.cblas_dgemm
        self.product.restype = None

    def call(self, left, right, sizes, x, y, out):
        """A call of gemm that writes the einsum `left`,`right`->mn of x and y to out, or None."""
        if set(left) != set("mk") or set(right) != set("kn") or len(left) + len(right) != 4:
            return None
        m, n, k = (sizes[c] for c in "mnk")
        by_rows, as_is, transposed = 101, 111, 112
        number, one, zero = ctypes.c_int, self.real(1), self.real(0)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (x, y, out)]
        return lambda: self.product(
            number(by_rows), number(as_is if left == "mk" else transposed),
            number(as_is if right == "kn" else transposed), number(m), number(n), number(k), one, pointers[0],
            number(sizes[left[1]]), pointers[1], number(sizes[right[1]]), zero, pointers[2], number(n))


def write_json(arguments, results):
    results_file.write(arguments.json, results)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--aplc", default="build/bin/aplc")
    parser.add_argument("--json", help="file of results")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--operators", action="store_true", help="other operators beside plain loops")
    parser.add_argument("--type", default="f32", choices=["f32", "f64"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--generate", type=pathlib.Path, help="only write the libraries' C to this folder")
    parser.add_argument("--code", type=pathlib.Path, help="take the libraries' C from this folder")
    parser.add_argument("--seconds", type=float, default=0.3, help="of calls a case and library")
    parser.add_argument("--blas", action="append", default=[], metavar="NAME=FILE",
                        help="a shared library with cblas_sgemm and cblas_dgemm, for products of two matrices")
    arguments = parser.parse_args()
    os.environ["BLIS_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(arguments.threads)
    os.environ["OMP_NUM_THREADS"] = str(arguments.threads)
    os.environ["OMP_PROC_BIND"] = "false"
    root = pathlib.Path(__file__).resolve().parent.parent
    kind = "float32" if arguments.type == "f32" else "float64"
    chosen = [case for case in cases(root, arguments.megabytes * 1e6, int(kind[-2:]) // 8) if arguments.only in case[0]]
    if arguments.generate:
        arguments.generate.mkdir(parents=True, exist_ok=True)
        for name, result, left, right, _ in chosen:
            generate(arguments.aplc, arguments.generate, name, program(result, left, right, arguments.type))
        return 0
    import numpy
    try:
        import torch
        torch.set_num_threads(arguments.threads)
    except ImportError:
        torch = None
    with tempfile.TemporaryDirectory() as folder:
        peaks = [measured_peaks(pathlib.Path(folder), int(kind[-2:]) // 8)]
        print("GFLOP/s and GB/s at best: " + ", ".join(f"{k} {v / 1e9:.1f}" for k, v in peaks[0].items()))
        if arguments.operators:
            results, wrong = time_operators(arguments, pathlib.Path(folder), peaks[0]["fma"])
            if arguments.json:
                write_json(arguments, {"type": "operators", "threads": arguments.threads, "peaks": peaks, "cases": results})
            return 1 if wrong else 0
    blas = {name: Blas(file, kind) for name, file in (one.split("=", 1) for one in arguments.blas)}
    random = numpy.random.default_rng(1)
    results, wrong = {}, 0
    peers = ["torch", "numpy", *blas]
    print(f"{'case':<14} {'ms':>9} {'GFLOP/s':>8} {' '.join(f'{p:>8}' for p in peers)} {'ratio':>6}  error")
    with tempfile.TemporaryDirectory() as folder:
        for name, result, left, right, sizes in chosen:
            code, seconds = arguments.code, None
            if code is None:
                code = pathlib.Path(folder)
                seconds = generate(arguments.aplc, code, name, program(result, left, right, arguments.type))
            library = Library(pathlib.Path(folder), code, name, arguments.type, (len(left), len(right), len(result)))
            x = random.uniform(-1, 1, [sizes[c] for c in left]).astype(kind)
            y = random.uniform(-1, 1, [sizes[c] for c in right]).astype(kind)
            spec = f"{left},{right}->{result}"
            ours = [library.array(x, len(left)), library.array(y, len(right))]
            work = 2.0
            for c in sizes.values():
                work *= c
            times = {"apl": median_of(lambda: library.free(library.call(*ours), len(result)), arguments.seconds)}
            if torch is not None:
                a, b = torch.from_numpy(x), torch.from_numpy(y)
                times["torch"] = median_of(lambda: torch.einsum(spec, a, b).contiguous(), arguments.seconds)
            path = numpy.einsum_path(spec, x, y, optimize=True)[0]
            if torch is None or work < 4e10:
                times["numpy"] = median_of(lambda: numpy.ascontiguousarray(numpy.einsum(spec, x, y, optimize=path)),
                                           arguments.seconds)
            product = numpy.empty([sizes[c] for c in result], kind)
            for peer, one in blas.items():
                call = one.call(left, right, sizes, x, y, product)
                if call is not None:
                    times[peer] = median_of(call, arguments.seconds)
            out = library.call(*ours)
            got = library.values(out, [sizes[c] for c in result], kind)
            library.free(out, len(result))
            want = torch.einsum(spec, a, b).numpy() if torch is not None else numpy.einsum(spec, x, y, optimize=path)
            error = float(numpy.abs(got - want).max() / max(1e-30, numpy.abs(want).max()))
            wrong += error > (1e-4 if kind == "float32" else 1e-12)
            best = min(t for peer, t in times.items() if peer != "apl")
            results[name] = {"spec": spec, "sizes": sizes, "milliseconds": {k: 1e3 * v for k, v in times.items()},
                             "gflops": work / times["apl"] / 1e9, "best_peer_over_apl": best / times["apl"],
                             "error": error, "cc_seconds": library.cc_seconds, "aplc_seconds": seconds}
            rate = {k: f"{work / v / 1e9:8.1f}" for k, v in times.items()}
            print(f"{name:<14} {1e3 * times['apl']:9.3f} {rate['apl']} "
                  f"{' '.join(rate.get(p, '       -') for p in peers)} {best / times['apl']:6.2f}  {error:.1e}", flush=True)
            for array, dims in zip(ours, (left, right)):
                library.free(array, len(dims))
        peaks.append(measured_peaks(pathlib.Path(folder), int(kind[-2:]) // 8))
    ratios = [r["best_peer_over_apl"] for r in results.values()]
    if ratios:
        print(f"geomean of the best peer's time over ours: {statistics.geometric_mean(ratios):.3f} ({len(ratios)} cases), "
              f"worst {min(ratios):.2f}; {wrong} wrong")
    if arguments.json:
        write_json(arguments, {"type": arguments.type, "threads": arguments.threads, "peaks": peaks,
                               "torch": torch and torch.__version__, "numpy": numpy.__version__, "cases": results})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
