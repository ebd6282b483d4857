#!/usr/bin/env python3
"""Files of `aplc cuda --emit=kernel` for every entry of examples/tour: compiled by nvcc, called on this machine's GPU, and
their results compared with the interpreter's.

    bench/kernel_files.py APLC [--json FILE] [--jobs N] [--compile-only]

Exit status 0 only if every file compiles and every result agrees: integers and truth values in each bit, floats within
1e-4 of the largest number of the result (1e-9 for f64).
"""
import argparse
import concurrent.futures
import ctypes
import glob
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

import results_file

TOUR = pathlib.Path(__file__).resolve().parent.parent / "examples" / "tour"
TYPES = {"float": np.float32, "double": np.float64, "int64_t": np.int64, "int32_t": np.int32, "uint8_t": np.uint8,
         "bool": np.bool_}
NAMES = {"float32": " f32", "float64": " f64", "int64": " i64", "int32": " i32", "uint8": "  u8", "bool": "bool"}
rng = np.random.default_rng(7)


def f32(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def i32(low, high, *shape):
    return rng.integers(low, high, shape).astype(np.int32)


def sparse(rows, columns, share):
    return np.where(rng.uniform(size=(rows, columns)) < share, f32(rows, columns), np.float32(0))


def square(n):
    return rng.uniform(-1, 1, (n, n)) + n * np.eye(n)


def roads(n):
    edges = i32(1, 1000, n, n)
    np.fill_diagonal(edges, 0)
    return edges


def bits(*shape):
    return rng.uniform(size=shape) < 0.4


# An entry's arguments in the order of its source; the sizes that a call takes before them, in its order.
CASES = {
    "attention.band": ([130], [np.int64(130), np.int64(9)]),
    "attention.noise": ([3, 70, 33], [np.int64(3), np.int64(70), np.int64(33), np.float32(1.5)]),
    "attention.weighted": ([100, 100, 3, 16, 24], [sparse(100, 100, 0.2), f32(3, 100, 16), f32(3, 100, 16), f32(3, 100, 24)]),
    "attention.stable": ([100, 100, 3, 16, 24], [sparse(100, 100, 0.2), f32(3, 100, 16), f32(3, 100, 16), f32(3, 100, 24)]),
    "graph_layer.layer": ([150, 40, 33], [sparse(150, 150, 0.05), f32(150, 40), f32(40, 33), f32(33)]),
    "heat.heat": ([67, 45], [np.int32(9), f32(67, 45)]),
    "heat.sharpen": ([67, 45], [i32(-99, 99, 67, 45)]),
    "histogram.histogram": ([5000, 37], [np.int64(37), i32(-2, 40, 5000)]),
    "histogram.equalize": ([67, 45], [rng.integers(0, 256, (67, 45)).astype(np.uint8)]),
    "histogram.radix_sort": ([3000], [i32(-2**31, 2**31, 3000)]),
    "histogram.last_places": ([1000], [rng.integers(0, 1000, 1000)]),
    "inversion.inverse": ([40], [square(40)]),
    "inversion.residue": ([40], [square(40)]),
    "kmeans.kmeans": ([7, 900, 3], [np.int32(5), i32(-999, 999, 7, 3), i32(-999, 999, 900, 3)]),
    "layers.classify": ([30, 20, 40, 10], [f32(30, 20), f32(40, 20), f32(40), f32(10, 40), f32(10)]),
    "life.life": ([67, 45], [np.int32(9), bits(67, 45)]),
    "life.alive": ([67, 45], [bits(67, 45)]),
    "line_of_sight.visible": ([4000], [i32(0, 1000, 4000)]),
    "line_of_sight.sums_in_segments": ([4000], [bits(4000), i32(-99, 99, 4000)]),
    "line_of_sight.run_numbers": ([4000], [i32(0, 2, 4000)]),
    "mandelbrot.mandelbrot": ([45, 67], [np.int32(50), np.linspace(-2, 0.5, 67).astype(np.float32),
                                         np.linspace(-1, 1, 45).astype(np.float32)]),
    "nbody.step": ([200], [np.float32(0.01), f32(200), f32(200), f32(200), f32(200), f32(200) + 1]),
    "nbody.energy": ([200], [f32(200), f32(200), f32(200), f32(200), f32(200) + 1]),
    "shortest_paths.join": ([33, 47, 65], [i32(0, 999, 33, 65), i32(0, 999, 65, 47)]),
    "shortest_paths.by_products": ([40], [roads(40)]),
    "shortest_paths.by_steps": ([40], [roads(40)]),
}


def value_file(value, path):
    value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
    shape = np.asarray(value.shape, np.int64).tobytes()
    path.write_bytes(b"b" + bytes([2, value.ndim]) + NAMES[str(value.dtype)].encode() + shape + value.tobytes())


def values_of(data):
    found, at = [], 0
    names = {name: np.dtype(kind) for kind, name in NAMES.items()}
    while at < len(data):
        rank, kind = data[at + 2], names[data[at + 3:at + 7].decode()]
        shape = np.frombuffer(data, np.int64, rank, at + 7)
        count = int(np.prod(shape))
        at += 7 + 8 * rank
        found.append(np.frombuffer(data, kind, count, at).reshape(shape))
        at += count * kind.itemsize
    return found


def compressed_rows(matrix, part):
    rows, columns = np.nonzero(matrix)
    return {"values": matrix[rows, columns], "row_start": np.searchsorted(rows, np.arange(matrix.shape[0] + 1)).astype(np.int64),
            "row": rows.astype(np.int32), "column": columns.astype(np.int32)}[part]


def compile_case(aplc, name, folder, compile_only):
    program, entry = name.split(".")
    source = folder / f"{name}.cu"
    subprocess.run([aplc, "cuda", "--emit=kernel", "-e", entry, "-o", source, TOUR / f"{program}.fut"], check=True,
                   capture_output=True)
    signature = re.search(rf"^cudaError_t ({entry})\((.*?)\) {{", source.read_text(), re.M | re.S).group(2)
    parameters = [parameter.strip() for parameter in " ".join(signature.split()).split(",")]
    names = [re.search(r"\w+$", parameter).group() for parameter in parameters]
    wrapper = folder / f"{name}.wrapper.cu"
    wrapper.write_text(f'#include "{source.name}"\nextern "C" int call_it({", ".join(parameters)}) '
                       f'{{ return static_cast<int>({entry}({", ".join(names)})); }}\n')
    library = folder / f"{name}.so"
    subprocess.run(["nvcc", "-std=c++17", "-arch=sm_90" if compile_only else "-arch=native", "-shared", "-Xcompiler=-fPIC",
                    "--cudart=shared", wrapper, "-o", library], check=True, capture_output=True, text=True)
    return parameters


def expected(aplc, name, values, folder):
    program, entry = name.split(".")
    files = []
    for k, value in enumerate(values):
        files.append(folder / f"{name}.{k}.bin")
        value_file(value, files[-1])
    run = subprocess.run([aplc, "run", "-b", "--backend", "interp", "-e", entry, TOUR / f"{program}.fut"] +
                         [f"@{path}" for path in files], check=True, capture_output=True)
    return values_of(run.stdout)


class Device:
    def __init__(self):
        found = sorted(glob.glob("/usr/local/cuda*/lib64/libcudart.so.*")) or ["libcudart.so"]
        self.library = ctypes.CDLL(found[-1], mode=ctypes.RTLD_GLOBAL)

    def check(self, status):
        if status != 0:
            self.library.cudaGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(self.library.cudaGetErrorString(status).decode())

    def array(self, value):
        pointer = ctypes.c_void_p()
        self.check(self.library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(max(value.nbytes, 1))))
        self.check(self.library.cudaMemcpy(pointer, value.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(value.nbytes), 1))
        return pointer

    def read(self, pointer, like):
        value = np.empty_like(like)
        self.check(self.library.cudaMemcpy(value.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(value.nbytes), 2))
        return value


def call(device, parameters, library, sizes, values, wanted):
    """The results of one call, and the number of the check that failed."""
    arguments, results, failure = [], [], None
    sizes, scalars = list(sizes), [v for v in values if np.ndim(v) == 0]
    arrays = [v for v in values if np.ndim(v) != 0]
    is_sparse = any("_nonzeros" in parameter for parameter in parameters)
    for parameter in parameters:
        kind, name = re.match(r"(?:const )?(\w+) \*?(\w+)", parameter).groups()
        part = re.fullmatch(r"(?:mask|graph)_(nonzeros|values|row_start|row|column)", name)
        if name == "stream":
            arguments.append(ctypes.c_void_p(None))
        elif name == "failure":
            failure = device.array(np.zeros(26, np.int32))
            arguments.append(failure)
        elif name.startswith("result") and "*" in parameter:
            # Scalars are the host's.
            like = np.zeros_like(wanted[len(results)])
            results.append(like if like.ndim == 0 else device.array(np.ascontiguousarray(like)))
            arguments.append(results[-1].ctypes.data_as(ctypes.c_void_p) if like.ndim == 0 else results[-1])
        elif part and part.group(1) == "nonzeros":
            arguments.append(ctypes.c_int64(np.count_nonzero(arrays[0])))
        elif part:
            arguments.append(device.array(np.ascontiguousarray(compressed_rows(arrays[0], part.group(1)))))
        elif "*" in parameter:
            # A sparse operand is the first one, and several parameters.
            arguments.append(device.array(np.ascontiguousarray(arrays.pop(1 if is_sparse else 0))))
        elif sizes:
            arguments.append(ctypes.c_int64(sizes.pop(0)))
        else:
            scalar = scalars.pop(0)
            arguments.append({"float": ctypes.c_float, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64}[kind](scalar.item()))
    device.check(ctypes.CDLL(str(library)).call_it(*arguments))
    device.check(device.library.cudaDeviceSynchronize())
    failed = device.read(failure, np.zeros(26, np.int32))[0] if failure else 0
    return [result if like.ndim == 0 else device.read(result, like) for result, like in zip(results, wanted)], int(failed)


def agree(got, wanted):
    if wanted.dtype.kind != "f":
        return bool(np.array_equal(got, wanted))
    most = 1e-9 if wanted.dtype == np.float64 else 1e-4
    return bool(np.max(np.abs(got - wanted), initial=0) <= most * max(1.0, float(np.max(np.abs(wanted), initial=0))))


def scalar_sizes(name, parameters, values):
    """The sizes of a call that are no parameters of the source, too, which it has once."""
    sizes, given = CASES[name][0], [v for v in values if np.ndim(v) == 0]
    wanted = sum("*" not in p and "stream" not in p and "_nonzeros" not in p for p in parameters)
    return sizes[:max(0, wanted - len(given))] if wanted < len(sizes) + len(given) else sizes


def run_case(options, name):
    """In a process of its own: what one file does wrong is not another's. Says the verdict."""
    folder, values = pathlib.Path(options.folder), CASES[name][1]
    parameters = json.loads((folder / f"{name}.json").read_text())
    wanted = expected(options.aplc, name, values, folder)
    got, failed = call(Device(), parameters, folder / f"{name}.so", scalar_sizes(name, parameters, values), values, wanted)
    if failed:
        return f"check {failed} failed"
    return "right" if all(agree(a, b) for a, b in zip(got, wanted)) else "wrong"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("aplc")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--case", help="one of them, compiled in --folder")
    parser.add_argument("--folder")
    options = parser.parse_args()
    if options.case:
        print(run_case(options, options.case))
        return 0
    lines, status = [], 0
    with tempfile.TemporaryDirectory() as place, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        folder = pathlib.Path(place)
        compiled = {name: pool.submit(compile_case, options.aplc, name, folder, options.compile_only) for name in CASES}
        for name in CASES:
            try:
                (folder / f"{name}.json").write_text(json.dumps(compiled[name].result()))
                verdict = "compiled"
                if not options.compile_only:
                    one = subprocess.run([sys.executable, "-X", "faulthandler", __file__, options.aplc, "--case", name,
                                          "--folder", place], check=True, capture_output=True, text=True, timeout=60)
                    verdict = one.stdout.strip()
            except (subprocess.SubprocessError, RuntimeError) as error:
                verdict = f"failed: {error}: {getattr(error, 'stderr', None) or ''}"
            status |= verdict not in ("right", "compiled")
            lines.append({"entry": name, "verdict": verdict})
            print(f"{name:34} {verdict}", flush=True)
    right = sum(line["verdict"] in ("right", "compiled") for line in lines)
    print(f"{right} of {len(lines)} kernel files")
    if options.json:
        results_file.write(options.json, {"compile_only": options.compile_only, "entries": lines})
    return status


if __name__ == "__main__":
    sys.exit(main())
