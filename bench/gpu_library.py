"""An entry of a program as a CUDA library in this process, called on torch's device memory and stream; and times of calls.

What NVRTC makes is kept in a file beside the library, so that other processes can compile kernels before they are timed.
"""
import ctypes
import subprocess

import torch

import timing

NAMES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64", torch.int8: "i8",
         torch.uint8: "u8", torch.int32: "i32", torch.int64: "i64"}
SCALARS = {torch.float32: ctypes.c_float, torch.float64: ctypes.c_double, torch.int32: ctypes.c_int32,
           torch.int64: ctypes.c_int64}


def build(aplc, text, folder, name, parameters=()):
    """The program `text` as the library FOLDER/NAME.so, with values NAME=VALUE of tuning parameters."""
    base = folder / name
    source = folder / f"{name}.fut"
    source.write_text(text)
    for command in ([aplc, "cuda", "--library", "-o", base, source, *(f"--param={p}" for p in parameters)],
                    ["cc", "-O1", "-shared", "-fPIC", f"{base}.c", "-o", f"{base}.so", "-lm", "-ldl", "-lpthread"]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr[-300:]}")


class Library:
    """The entry of a program that was built to `folder`, whose results have the types and ranks `results`."""

    def __init__(self, entry, results, folder, name=None):
        self.entry, self.results = entry, results
        base = folder / (name or entry)
        self.c = ctypes.CDLL(str(base) + ".so")
        for function in ("context_config_new", "context_new", "context_get_error"):
            getattr(self.c, f"futhark_{function}").restype = ctypes.c_void_p
        config = ctypes.c_void_p(self.c.futhark_context_config_new())
        self.c.futhark_context_config_set_cache_file(config, f"{base}.cache".encode())
        # 1 is the legacy default stream, which torch uses.
        self.c.futhark_context_config_set_stream(config, ctypes.c_void_p(1))
        self.context = ctypes.c_void_p(self.c.futhark_context_new(config))
        self.check(0)

    def check(self, status):
        message = self.c.futhark_context_get_error(self.context)
        if status or message:
            raise RuntimeError(f"{self.entry}: {ctypes.string_at(message).decode() if message else status}")

    def arguments(self, values):
        """C values; arrays borrow the memory of tensors, which must live."""
        out = []
        for value in values:
            if isinstance(value, torch.Tensor):
                make = getattr(self.c, f"futhark_new_raw_{NAMES[value.dtype]}_{value.dim()}d")
                make.restype = ctypes.c_void_p
                out.append(ctypes.c_void_p(make(self.context, ctypes.c_void_p(value.data_ptr()),
                                                *(ctypes.c_int64(size) for size in value.shape))))
            else:
                out.append(value)
        return out

    def call(self, arguments):
        """Results, which stay on the device; to be released."""
        slots = [SCALARS[kind]() if rank == 0 else ctypes.c_void_p() for kind, rank in self.results]
        if len(slots) == 1:
            status = getattr(self.c, f"futhark_entry_{self.entry}")(self.context, ctypes.byref(slots[0]), *arguments)
        else:
            pair = ctypes.c_void_p()
            status = getattr(self.c, f"futhark_entry_{self.entry}")(self.context, ctypes.byref(pair), *arguments)
            if not status:
                kind = "opaque_tup%d_" % len(slots) + "_".join(f"arr{r}d_{NAMES[k]}" for k, r in self.results)
                for part, slot in enumerate(slots):
                    status = status or getattr(self.c, f"futhark_project_{kind}_{part}")(
                        self.context, ctypes.byref(slot), pair)
                getattr(self.c, f"futhark_free_{kind}")(self.context, pair)
        if status:
            self.check(status)
        return slots

    def release(self, slots):
        for slot, (kind, rank) in zip(slots, self.results):
            if rank:
                getattr(self.c, f"futhark_free_{NAMES[kind]}_{rank}d")(self.context, slot)

    def warm(self, arguments):
        """Has the kernels of such a call compiled; keeps no memory."""
        self.release(self.call(self.arguments(arguments)))
        self.check(self.c.futhark_context_sync(self.context))
        self.forget()

    def forget(self):
        """Gives back device memory that is kept for later calls."""
        self.c.futhark_context_clear_caches(self.context)

    def values(self, slots):
        self.check(self.c.futhark_context_sync(self.context))
        out = []
        for slot, (kind, rank) in zip(slots, self.results):
            if not rank:
                out.append(torch.tensor(slot.value))
                continue
            name = f"{NAMES[kind]}_{rank}d"
            shape = getattr(self.c, f"futhark_shape_{name}")
            shape.restype = ctypes.POINTER(ctypes.c_int64)
            host = torch.empty([shape(self.context, slot)[k] for k in range(rank)], dtype=kind)
            self.check(getattr(self.c, f"futhark_values_{name}")(self.context, slot, ctypes.c_void_p(host.data_ptr())))
            self.check(self.c.futhark_context_sync(self.context))
            out.append(host)
        return out


def milliseconds(call, seconds=0.05, wait=torch.cuda.synchronize):
    """A call's, on the device that torch uses."""
    return timing.milliseconds(call, wait, seconds)
