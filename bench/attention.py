#!/usr/bin/env python3
"""Attention on this machine's GPU: five programs that write it differently, each beside PyTorch in the same run.

    bench/attention.py APLC [--json FILE] [--seconds 100] [--backend cuda|emulate] [--param NAME=VALUE]...

Results of odd sizes, and of those that are timed, are compared with PyTorch in f64: no element may be off by more than
2e-5 of the largest one. Times are medians, in milliseconds, of calls on device memory, one after the other without
waiting: of the one kernel (`apl`) and of the nest taken apart (`apart`). Peers are scaled_dot_product_attention, the
formula in PyTorch's operators, and that compiled. With --backend=emulate the emulator runs the odd sizes, and NumPy is the
reference. Exit status 0 only if all is right.
"""
import argparse
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

import results_file
from timing import milliseconds

PROGRAM = pathlib.Path(__file__).with_suffix(".fut")
ODD = {  # sizes that no tile divides
    "maps": [dict(h=3, n=130, m=77, d=40, e=33), dict(h=2, n=129, m=200, d=100, e=65), dict(h=1, n=1, m=1, d=1, e=1)],
    "tabulated": [dict(n=133, d=50)],
    "masked": [dict(b=2, h=2, n=70, m=131, d=24, e=64)],
    "queries": [dict(h=2, n=65, m=63, d=128, e=130)],
    "rows": [dict(n=141, d=64)],
}
TIMED = {
    "maps": [dict(h=16, n=2048, m=2048, d=64, e=64), dict(h=16, n=2048, m=2048, d=128, e=128)],
    "tabulated": [dict(n=4096, d=64)],
    "masked": [dict(b=2, h=8, n=2048, m=2048, d=64, e=64)],
    "queries": [dict(h=16, n=2048, m=2048, d=64, e=64)],
    "rows": [dict(n=4096, d=64)],
}
rng = np.random.default_rng(5)


def inputs(entry, size):
    def f32(*shape):
        return rng.normal(size=shape).astype(np.float32)

    outer = [size[k] for k in ("b", "h") if k in size]
    n, d = size["n"], size["d"]
    m, e = size.get("m", n), size.get("e", d)
    arrays = [f32(*outer, n, d), f32(*outer, m, d), f32(*outer, m, e)]
    if entry == "masked":
        arrays.append(rng.uniform(size=(size["b"], n, m)) < 0.7)
        arrays[-1][:, :, 0] = True
    if entry == "rows":
        arrays.append(f32(n, n))
    return arrays


def scores(entry, q, k, extra, where, full):
    """Scores before the softmax, in the library `where` (numpy or torch)."""
    s = q @ k.swapaxes(-1, -2)
    if entry == "masked":
        return where.where(extra[:, None], s * 0.125, full(-1e9))
    s = s * (0.125 if entry == "tabulated" else 1 / q.shape[-1] ** 0.5)
    if entry in ("tabulated", "rows"):
        if entry == "rows":
            s = s + extra
        n = s.shape[-1]
        keep = where.ones((n, n), dtype=bool) if where is np else where.ones((n, n), dtype=bool, device=s.device)
        s = where.where(where.tril(keep), s, full(-np.inf))
    return s


def reference(entry, arrays):
    wide = [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    s = scores(entry, wide[0], wide[1], wide[3] if len(wide) > 3 else None, np, np.float64)
    p = np.exp(s - s.max(-1, keepdims=True))
    return (p / p.sum(-1, keepdims=True)) @ wide[2]


class Library:
    """The programs as a CUDA library whose arrays are PyTorch's."""

    def __init__(self, aplc, folder, params):
        command = [aplc, "cuda", "--library", "-o", str(folder / "attention"), str(PROGRAM)]
        subprocess.run(command + [f"--param={p}" for p in params], check=True)
        subprocess.run(["cc", "-O1", "-fPIC", "-shared", "-o", str(folder / "attention.so"),
                        str(folder / "attention.c"), "-lm", "-ldl", "-lpthread"], check=True)
        self.code = ctypes.CDLL(str(folder / "attention.so"))
        for name in ("futhark_context_config_new", "futhark_context_new", "futhark_context_get_error"):
            getattr(self.code, name).restype = ctypes.c_void_p
        config = ctypes.c_void_p(self.code.futhark_context_config_new())
        self.context = ctypes.c_void_p(self.code.futhark_context_new(config))

    def array(self, tensor):
        kind = "bool" if tensor.element_size() == 1 else "f32"
        make = getattr(self.code, f"futhark_new_raw_{kind}_{tensor.dim()}d")
        make.restype = ctypes.c_void_p
        return ctypes.c_void_p(make(self.context, ctypes.c_ulonglong(tensor.data_ptr()),
                                    *[ctypes.c_int64(n) for n in tensor.shape]))

    def wait(self):
        if self.code.futhark_context_sync(self.context) != 0:
            raise RuntimeError(ctypes.string_at(self.code.futhark_context_get_error(self.context)).decode())

    def call(self, entry, arrays, rank):
        out = ctypes.c_void_p()
        if getattr(self.code, f"futhark_entry_{entry}")(self.context, ctypes.byref(out), *arrays) != 0:
            raise RuntimeError(ctypes.string_at(self.code.futhark_context_get_error(self.context)).decode())
        return out

    def free(self, array, rank):
        getattr(self.code, f"futhark_free_f32_{rank}d")(self.context, array)

    def values(self, array, shape):
        result = np.empty(shape, np.float32)
        read = getattr(self.code, f"futhark_values_f32_{len(shape)}d")
        if read(self.context, array, ctypes.c_void_p(result.ctypes.data)) != 0:
            raise RuntimeError("values")
        self.wait()
        return result


def error(got, wanted):
    return float(np.abs(got - wanted).max() / np.abs(wanted).max())


def peers(entry, tensors, compiles):
    import torch
    from torch.nn.functional import scaled_dot_product_attention as sdpa

    q, k, v = tensors[:3]
    extra = tensors[3] if len(tensors) > 3 else None

    def full(x):
        return torch.tensor(x, device=q.device, dtype=q.dtype)

    def naive():
        return torch.softmax(scores(entry, q, k, extra, torch, full), -1) @ v

    calls = {"torch": naive}
    if entry in ("maps", "queries"):
        calls["sdpa"] = lambda: sdpa(q, k, v)
    elif entry == "tabulated":
        calls["sdpa"] = lambda: sdpa(q[None, None], k[None, None], v[None, None], is_causal=True, scale=0.125)
    elif entry == "masked":
        calls["sdpa"] = lambda: sdpa(q, k, v, attn_mask=extra[:, None], scale=0.125)
    if compiles:
        calls["compiled"] = torch.compile(naive)
    times = {}
    for name, call in calls.items():
        try:
            times[name] = milliseconds(call, torch.cuda.synchronize, 0.02, 50)
        except Exception as why:  # a peer that does not run on this machine is left out, and said
            print(f"  {name}: {type(why).__name__}: {str(why)[:80]}")
    return times


def on_gpu(options, folder):
    import torch

    # One kernel, and the nest taken apart.
    entries = list(ODD)
    (folder / "apart").mkdir()
    library = Library(options.aplc, folder, [f"{e}.attention.from=1" for e in entries] + options.param)
    apart = Library(options.aplc, folder / "apart", [f"{e}.attention.from=1000000000" for e in entries] + options.param)
    results, good, start = [], True, time.time()
    for entry, sizes in [(e, s) for table in (ODD, TIMED) for e, all_sizes in table.items() for s in all_sizes]:
        if time.time() - start > options.seconds:
            print(f"{entry} {sizes}: left out, no time")
            continue
        arrays = inputs(entry, sizes)
        tensors = [torch.from_numpy(a).cuda() for a in arrays]
        torch.cuda.synchronize()
        given = [library.array(t) for t in tensors]
        shape = (*arrays[0].shape[:-1], arrays[2].shape[-1])
        out = library.call(entry, given, len(shape))
        got = library.values(out, shape)
        library.free(out, len(shape))
        wide = [t.double() if t.dtype == torch.float32 else t for t in tensors]
        s = scores(entry, wide[0], wide[1], wide[3] if len(wide) > 3 else None, torch,
                   lambda x: torch.tensor(x, device="cuda", dtype=torch.float64))
        wanted = (torch.softmax(s, -1) @ wide[2]).cpu().numpy()
        del wide, s
        off = error(got, wanted)
        right = off < 2e-5
        good = good and right
        row = {"entry": entry, "sizes": sizes, "error": off}
        if sizes in TIMED[entry]:
            def call():
                library.free(library.call(entry, given, len(shape)), len(shape))

            row["apl"] = milliseconds(call, library.wait, 0.02, 50)
            others = [apart.array(t) for t in tensors]

            def call_apart():
                apart.free(apart.call(entry, others, len(shape)), len(shape))

            row["apart"] = milliseconds(call_apart, apart.wait, 0.02, 50)
            row.update(peers(entry, tensors, options.compile))
        results.append(row)
        times = "  ".join(f"{k} {v:.3f}" for k, v in row.items() if isinstance(v, float) and k != "error")
        print(f"{entry:10} {'right' if right else 'WRONG'} {off:.1e}  {' '.join(f'{k}={v}' for k, v in sizes.items())}  {times}",
              flush=True)
    return results, good


def text_of(array):
    def go(a):
        if a.ndim:
            return "[" + ", ".join(go(x) for x in a) + "]"
        return ("true" if a else "false") if a.dtype == bool else f"{float(a):.9e}f32"

    return go(array)


def emulated(options, folder):
    results, good = [], True
    for entry, all_sizes in ODD.items():
        for sizes in all_sizes:
            arrays = inputs(entry, sizes)
            command = [options.aplc, "run", f"--backend={options.backend}", "-e", entry,
                       f"--param={entry}.attention.from=1", str(PROGRAM)]
            ran = subprocess.run(command + [f"--param={p}" for p in options.param], capture_output=True, text=True,
                                 input="\n".join(text_of(a) for a in arrays))
            wanted = reference(entry, arrays)
            numbers = [float(x) for x in re.findall(r"(-?[0-9.]+(?:e[-+]?[0-9]+)?)f32", ran.stdout)]
            off = error(np.array(numbers).reshape(wanted.shape), wanted) if len(numbers) == wanted.size else np.inf
            good = good and off < 2e-5
            results.append({"entry": entry, "sizes": sizes, "error": off})
            print(f"{entry:10} {'right' if off < 2e-5 else 'WRONG'} {off:.1e}  {sizes}  {ran.stderr[:300]}", flush=True)
    return results, good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("aplc")
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--json")
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--compile", action="store_true", help="torch.compile as a peer, too")
    parser.add_argument("--param", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = on_gpu if options.backend == "cuda" else emulated
        results, good = run(options, pathlib.Path(folder))
    if options.json:
        results_file.write(options.json, results)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
