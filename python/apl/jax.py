"""Entries as functions of JAX.

    import apl.jax
    mm = apl.jax.function("mm.fut", "mm")
    jax.jit(mm)(A, B)                    # on the device of the computation
    jax.vmap(mm, in_axes=(0, None))(As, B)   # an entry that maps over the batch, made and compiled for it
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from typing import Any, Callable, Optional, Sequence, Union

import jax
import jax.ffi
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from . import CommandError, Compiler, Entry, Module, _apl, _cache_folder
from ._shapes import Unknown, bind, size

__all__ = ["function"]

_TYPES = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": jax.numpy.bfloat16, "f32": np.float32,
    "f64": np.float64, "bool": np.bool_,
}  # fmt: skip

_handlers: Optional[ctypes.CDLL] = None


def _register() -> None:
    """Compiles the handler for the headers of this jaxlib, once for all processes, and tells XLA of it."""
    global _handlers
    if _handlers is not None:
        return
    source = os.path.join(os.path.dirname(__file__), "_jax_ffi.c")
    with open(source, "rb") as file:
        key = hashlib.sha256(file.read() + jax.lib.__version__.encode()).hexdigest()[:20]
    folder = _cache_folder() or tempfile.gettempdir()
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"jax-{key}.so")
    if not os.path.exists(path):
        with tempfile.TemporaryDirectory(dir=folder) as own:
            made = os.path.join(own, "handler.so")
            command = [os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-I", jax.ffi.include_dir(), source, "-o", made]
            subprocess.run(command, check=True, capture_output=True, text=True)
            os.replace(made, path)
    library = ctypes.CDLL(path)
    jax.ffi.register_ffi_target("apl_call_cpu", jax.ffi.pycapsule(library.apl_ffi_cpu), platform="cpu")
    jax.ffi.register_ffi_target("apl_call_cuda", jax.ffi.pycapsule(library.apl_ffi_cuda), platform="CUDA")
    _handlers = library


class _Function:
    """One entry: what calls it for each platform, and its entries for batches."""

    def __init__(self, module: Module, entry: Entry, settings: dict):
        if any(value.sparse for value in entry.inputs):
            raise NotImplementedError(f"entry {entry.name} has a sparse operand")
        if any(param.values != 1 for param in entry.params):
            raise NotImplementedError(f"entry {entry.name} has parameters of several values")
        self.module, self.entry, self.settings = module, entry, settings
        self.targets: dict[str, int] = {}
        self.batched: dict[tuple[bool, ...], "_Function"] = {}

    def target(self, backend: str) -> int:
        if backend not in self.targets:
            compiler = self.module._compiler._raw
            self.targets[backend] = _apl.ffi_target(compiler, self.module._raw, backend, self.entry.name)
        return self.targets[backend]

    def results(self, arguments: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
        known = bind(self.entry.inputs, [a.shape if v.rank else None for a, v in zip(arguments, self.entry.inputs)],
                     [None] * len(arguments))
        try:
            return [jax.ShapeDtypeStruct([size(text, known) for text in o.shape], _TYPES[o.type])
                    for o in self.entry.outputs]
        except Unknown as error:
            raise NotImplementedError(f"entry {self.entry.name}: the size {error} of a result depends on values") from None

    def call(self, *arguments: Any) -> Any:
        """The call itself, of whole arrays or of shards."""
        _register()
        results = self.results(arguments)

        def on(platform: str, backend: str) -> Callable[..., Any]:
            def run(*given: Any) -> Any:
                made = jax.ffi.ffi_call(f"apl_call_{platform}", results)
                return made(*given, function=np.int64(_apl.ffi_function()), target=np.int64(self.target(backend)))

            return run

        # Numbers would lie in a device's memory, where the host's code cannot read them.
        if any(v.rank == 0 for v in self.entry.inputs):
            cuda = None
        else:
            cuda = on("cuda", "cuda")
        made = jax.lax.platform_dependent(*arguments, cpu=on("cpu", "c"), **({"cuda": cuda} if cuda else {}))
        return made[0] if len(results) == 1 else tuple(made)

    def with_batch(self, is_batched: Sequence[bool]) -> "_Function":
        """The entry that maps this one over the first dim of some arguments."""
        key = tuple(is_batched)
        if key not in self.batched:
            source = self.module.source
            if self.module._raw.file.endswith(".aplir") or not source:
                raise NotImplementedError("a batch of an entry that is not of source")
            batch = "batch_"
            while batch in source:
                batch += "_"
            names = sorted({text for v in self.entry.inputs for text in v.shape if text.isidentifier()})
            params, mapped, arguments = [], [], []
            for k, (param, each) in enumerate(zip(self.entry.params, is_batched)):
                type_ = param.type.lstrip("*")
                params.append(f"(a{k}: {'[' + batch + ']' if each else ''}{type_})")
                if each:
                    mapped.append(f"a{k}")
                arguments.append(f"a{k}")
            name = f"{self.entry.name}_over_{''.join('1' if b else '0' for b in is_batched)}"
            # Sizes are named as the parameters' types name them.
            text_sizes = sorted({word for p in self.entry.params for word in _sizes_of(p.type)} | (set(names) & set()))
            head = " ".join([f"[{batch}]"] + [f"[{s}]" for s in text_sizes])
            body = _mapped(f"{self.entry.name} {' '.join(arguments)}", mapped, len(self.entry.outputs))
            text = f"{source}\nentry {name} {head} {' '.join(params)} = {body}\n"
            module = Compiler(**self.settings).parse(text, self.module._raw.file)
            self.batched[key] = _Function(module, module.entries[name], self.settings)
        return self.batched[key]

    def sharding_rule(self) -> Optional[str]:
        """Which dims are the same, for XLA: those of one name."""
        letters: dict[str, str] = {}

        def dims(shape: Sequence[str]) -> str:
            return " ".join(letters.setdefault(text, f"d{len(letters)}") for text in shape)

        if any(not text.isidentifier() for v in (*self.entry.inputs, *self.entry.outputs) for text in v.shape):
            return None
        left = ", ".join(dims(v.shape) for v in self.entry.inputs)
        right = ", ".join(dims(v.shape) for v in self.entry.outputs)
        self.alone = tuple(letters[t] for t in letters if all(t not in o.shape for o in self.entry.outputs))
        self.whole_dims = [[letters[text] in self.alone for text in v.shape] for v in self.entry.inputs]
        return f"{left} -> {right}"


def _grouped(names: Sequence[str]) -> Any:
    """Names in nested lists of `_MOST` at most."""
    groups = list(names)
    while len(groups) > _MOST:
        groups = [groups[k] if k + 1 == len(groups) else groups[k : k + _MOST] for k in range(0, len(groups), _MOST)]
    return groups


_MOST = 5  # arrays of Futhark's map, zip and unzip


def _pattern(tree: Any) -> str:
    return tree if isinstance(tree, str) else f"({', '.join(map(_pattern, tree))})"


def _zipped(tree: Any) -> str:
    return tree if isinstance(tree, str) else f"({_numbered('zip', len(tree), 2)} {' '.join(map(_zipped, tree))})"


def _numbered(name: str, count: int, plain: int) -> str:
    return f"{name}{count if count > plain else ''}"


def _mapped(call: str, arrays: Sequence[str], results: int) -> str:
    """A map of `call` over arrays, whose elements have their names, that gives an array for each result."""
    tree = _grouped(arrays)
    names = [f"r{k}" for k in range(results)]
    made = _grouped(names)
    if results > _MOST:
        call = f"let {_pattern(names)} = {call} in {_pattern(made)}"
    body = (f"{_numbered('map', len(tree), 1)} (\\{' '.join(map(_pattern, tree))} -> {call})"
            f" {' '.join(map(_zipped, tree))}")
    if results == 1:
        return body
    lines, parts = [], [(made, body)]
    while parts:
        part, value = parts.pop(0)
        inner = [each if isinstance(each, str) else f"p{len(lines)}_{k}" for k, each in enumerate(part)]
        lines.append(f"let {_pattern(inner)} = {_numbered('unzip', len(part), 2)} ({value})")
        parts += [(each, name) for each, name in zip(part, inner) if each is not name]
    return f"{' '.join(lines)} in {_pattern(names)}"


def _sizes_of(type_: str) -> list[str]:
    words, at = [], 0
    while True:
        first = type_.find("[", at)
        if first < 0:
            return words
        at = type_.index("]", first)
        if type_[first + 1 : at].isidentifier():
            words.append(type_[first + 1 : at])


def _make(function: _Function) -> Callable[..., Any]:
    rule = function.sharding_rule()
    if rule is None:
        shards = function.call
    else:
        # A dim that results do not have is summed over, or worse: every shard has all of it.
        shards = custom_partitioning(function.call)

        def partition(mesh: Any, argument_shapes: Any, result_shape: Any) -> Any:
            # What propagation leaves sharded along such a dim is gathered here.
            argument_shardings = tuple(
                NamedSharding(mesh, P(*[None if whole else part for whole, part in
                                        zip(wholes, (*a.sharding.spec, *[None] * len(wholes)))]))
                for wholes, a in zip(function.whole_dims, argument_shapes)
            )
            result_shardings = jax.tree.map(lambda a: a.sharding, result_shape)
            return mesh, function.call, result_shardings, argument_shardings

        shards.def_partition(partition=partition, sharding_rule=rule, need_replication_factors=function.alone)

    @jax.custom_batching.custom_vmap
    def entry(*arguments: Any) -> Any:
        return shards(*arguments)

    @entry.def_vmap
    def over_batch(axis_size: int, in_batched: Sequence[bool], *arguments: Any) -> Any:
        batched = _batched(function, tuple(in_batched))
        result = batched(*arguments)
        return result, jax.tree.map(lambda _: True, result)

    return entry


_made: dict[int, Callable[..., Any]] = {}


def _batched(function: _Function, is_batched: tuple[bool, ...]) -> Callable[..., Any]:
    other = function.with_batch(is_batched)
    if id(other) not in _made:
        _made[id(other)] = _make(other)
    return _made[id(other)]


def function(
    source: Union[str, os.PathLike, Module], entry: Optional[str] = None, **settings: Any
) -> Callable[..., Any]:
    """An entry as a function of arrays, under `jit`, `vmap` (by an entry that maps over the batch), `shard_map`, and of
    arrays that are sharded along dims that the results have (others are gathered first). It has no derivative.

    Numbers that it takes are arrays of rank 0, on the CPU alone. Types must be the entry's. The sizes of results must
    follow from those of arguments. Settings are those of apl.Compiler.
    """
    compiler = Compiler(**settings)
    module = source if isinstance(source, Module) else compiler.parse(source)
    entries = module.entries
    if entry is None:
        if len(entries) != 1:
            raise ValueError(f"which entry? {', '.join(entries)}")
        entry = next(iter(entries))
    if entry not in entries:
        raise AttributeError(f"no entry {entry!r}; there are {', '.join(entries)}")
    return _make(_Function(module, entries[entry], settings))
