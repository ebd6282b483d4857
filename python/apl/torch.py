"""Entries as operators of PyTorch.

    import apl.torch
    mm = apl.torch.operator("mm.fut", "mm")
    mm(A, B)                       # on the device of A and B, on the current stream
    torch.compile(lambda A, B: mm(A, B).relu())(A, B)
"""

from __future__ import annotations

import itertools
import os
from typing import Any, Callable, Optional, Union

import torch

from . import Compiler, Module, Program, _apl
from ._shapes import Unknown, bind, size

__all__ = ["operator"]

_TYPES = {
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
    "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64, "f16": torch.float16, "bf16": torch.bfloat16,
    "f32": torch.float32, "f64": torch.float64, "bool": torch.bool,
}  # fmt: skip

_library = torch.library.Library("apl", "DEF")
_numbers = itertools.count()


def _schema(name: str, entry: Any) -> str:
    kinds = {"f": "float", "b": "bool"}
    params = []
    for k, value in enumerate(entry.inputs):
        kind = "Tensor" if value.rank else kinds.get("b" if value.type == "bool" else value.type[0], "SymInt")
        params.append(f"{kind} a{k}")
    results = ["Tensor"] * len(entry.outputs)
    return f"{name}({', '.join(params)}) -> {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}"


def operator(
    source: Union[str, os.PathLike, Module],
    entry: Optional[str] = None,
    *,
    name: Optional[str] = None,
    wait: bool = False,
    **settings: Any,
) -> Callable[..., Any]:
    """An entry as an operator `apl::NAME`, which takes and gives tensors; numbers are Python's, and those that it gives
    are tensors of rank 0.

    Tensors of the CPU are computed with by backend "c", those of a GPU by "cuda" on the current stream of their device,
    whose results may still be under way when it returns: with `wait` it does not return before, and a failed check is
    raised by the call itself, not by a later one. Tensors are not copied if they are contiguous. It has no derivative:
    tensors that require gradients are an error, except under `torch.no_grad()`. Settings are those of apl.Compiler.
    """
    compiler = Compiler(**settings)
    module = source if isinstance(source, Module) else compiler.parse(source)
    entries = module.entries
    if entry is None:
        if len(entries) != 1:
            raise ValueError(f"which entry? {', '.join(entries)}")
        entry = next(iter(entries))
    info = entries[entry]
    if any(value.sparse for value in info.inputs):
        raise NotImplementedError(f"entry {entry} has a sparse operand")
    unique = f"{name or entry}_{next(_numbers)}" if name is None else name
    unique = "".join(c if c.isalnum() else "_" for c in unique)
    programs: dict[tuple[str, int], Program] = {}

    def program_for(device: torch.device) -> Program:
        key = (device.type, device.index or 0)
        program = programs.get(key)
        if program is None:
            if device.type == "cpu":
                program = module.copy().load("c")
            elif device.type == "cuda":
                made = Compiler(**{**settings, "cuda_device": device.index or 0})
                program = Module(module._raw.copy(), made).load("cuda")
            else:
                raise NotImplementedError(f"tensors of device {device.type}")
            programs[key] = program
        return program

    def finish(results: list) -> Any:
        for k, output in enumerate(info.outputs):
            if output.rank == 0:
                results[k] = torch.tensor(results[k], dtype=_TYPES[output.type])
        return results[0] if len(results) == 1 else tuple(results)

    like = _apl.Like.torch

    def on_cpu(*arguments: Any) -> Any:
        raw = program_for(torch.device("cpu"))._raw
        return finish(raw.call(entry, [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments], like, True))

    streams: dict[int, int] = {}

    def on_cuda(*arguments: Any) -> Any:
        device = next(a.device for a in arguments if isinstance(a, torch.Tensor))
        raw = program_for(device)._raw
        # 0 is CUDA's legacy stream, which the driver's own number 1 says, too; to apl it would be a stream of its own.
        stream = torch.cuda.current_stream(device).cuda_stream or 1
        if streams.get(device.index) != stream:
            raw.set_stream(stream)
            streams[device.index] = stream
        given = [a.detach() if isinstance(a, torch.Tensor) else a for a in arguments]
        return finish(raw.call(entry, given, like, wait))

    def fake(*arguments: Any) -> Any:
        shapes = [a.shape if isinstance(a, torch.Tensor) else None for a in arguments]
        known = bind(info.inputs, shapes, [None if s is not None else a for s, a in zip(shapes, arguments)])
        device = next((a.device for a in arguments if isinstance(a, torch.Tensor)), torch.device("cpu"))

        def dim(text: str) -> Any:
            try:
                return size(text, known)
            except Unknown:
                if text not in known:
                    known[text] = torch.library.get_ctx().new_dynamic_size()
                return known[text]

        results = [
            torch.empty(
                [dim(text) for text in output.shape],
                dtype=_TYPES[output.type],
                device=device if output.rank else torch.device("cpu"),
            )
            for output in info.outputs
        ]
        return results[0] if len(results) == 1 else tuple(results)

    _library.define(_schema(unique, info), tags=(torch.Tag.needs_fixed_stride_order,))
    has_tensors = any(value.rank for value in info.inputs)
    _library.impl(unique, on_cpu, "CPU" if has_tensors else "CompositeExplicitAutograd")
    if has_tensors:
        _library.impl(unique, on_cuda, "CUDA")
    torch.library.register_fake(f"apl::{unique}", fake)
    if has_tensors:
        # Called where a derivative would be recorded, not under `torch.no_grad()`.
        def refuse(ctx: Any, inputs: Any, output: Any) -> None:
            first = next(k for k, a in enumerate(inputs) if isinstance(a, torch.Tensor) and a.requires_grad)
            raise NotImplementedError(
                f"entry {entry} has no derivative in torch, and argument {info.inputs[first].name} requires a gradient: "
                "call `.detach()` on it, or the operator under `torch.no_grad()`"
            )

        torch.library.register_autograd(f"apl::{unique}", lambda ctx, *grads: None, setup_context=refuse, lib=_library)
    return getattr(torch.ops.apl, unique).default
