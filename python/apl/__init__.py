"""apl: a compiler for data-parallel array programs.

    import apl, numpy as np
    program = apl.compile("entry twice [n] (xs: [n]f32) : [n]f32 = map (* 2) xs")
    program.twice(np.arange(3, dtype=np.float32))

`compile` gives a program whose entries are functions; `parse` gives a module, on which passes run one by one.
"""

from __future__ import annotations

import html as _html
import os as _os
import weakref as _weakref
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as _np

from . import _apl
from ._errors import (
    BugError,
    CommandError,
    Diagnostic,
    Error,
    LimitationError,
    MachineError,
    Note,
    Place,
    ProgramError,
)

__version__ = _apl.__version__
__all__ = [
    "BugError", "CommandError", "Compiler", "Diagnostic", "Entry", "Error", "LimitationError", "MachineError",
    "Matrix", "Module", "Note", "Page", "Param", "Place", "Program", "ProgramError", "Remark", "Statement", "Text",
    "ValueType", "compile", "parse", "search",
]  # fmt: skip


class Remark(NamedTuple):
    """What a pass did ("applied"), did not do ("missed") or found out ("analysis")."""

    kind: str
    pass_name: str
    code: str
    function: str
    message: str
    line: int
    column: int
    end_line: int
    end_column: int
    facts: dict[str, str]
    suggestion: str

    def __str__(self) -> str:
        facts = ", ".join(f"{name}={value}" for name, value in self.facts.items())
        at = f"{self.line}:{self.column}: " if self.line else ""
        return f"{at}{self.pass_name}: {self.message}" + (f" {{{facts}}}" if facts else "")


class Statement(NamedTuple):
    """A statement of a module; `depth` counts the bodies around it in its function."""

    function: str
    operation: str
    text: str
    depth: int
    line: int
    column: int


class ValueType(NamedTuple):
    type: str  # "f32"
    rank: int
    sparse: bool  # a matrix that may be given by its non-zeros
    pattern: Optional[int] = None  # of a result: it has the non-zeros of this argument
    name: str = ""  # in the IR, of an argument
    shape: tuple[str, ...] = ()  # in terms of sizes, and of arguments that are numbers; by their names in the IR


class Param(NamedTuple):
    name: str
    type: str  # of the source
    values: int  # a record or tuple is several


class Entry(NamedTuple):
    name: str
    params: tuple[Param, ...]
    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]
    results: tuple[str, ...]  # types of the source


def _entries(raw: list) -> dict[str, Entry]:
    return {
        name: Entry(
            name,
            tuple(Param(*p) for p in params),
            tuple(ValueType(*v[:5], tuple(v[5])) for v in inputs),
            tuple(ValueType(*v[:5], tuple(v[5])) for v in outputs),
            tuple(results),
        )
        for name, params, inputs, outputs, results in raw
    }


class Text(str):
    """A text that a notebook shows as it stands."""

    def _repr_html_(self) -> str:
        return f"<pre>{_html.escape(self)}</pre>"

    def __repr__(self) -> str:
        return str(self)


class Page(str):
    """A page in HTML, in one piece; a notebook shows it in a frame."""

    def save(self, path: Union[str, _os.PathLike]) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(self)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{_html.escape(self)}" width="100%" height="700" style="border:0"></iframe>'

    def __repr__(self) -> str:
        return f"<page of {len(self)} characters>"


def _cache_folder() -> str:
    """That of aplc: below XDG_CACHE_HOME, or ~/.cache."""
    folder = _os.environ.get("XDG_CACHE_HOME", "")
    if folder.startswith("/"):
        return folder + "/aplc"
    home = _os.environ.get("HOME", "")
    return home + "/.cache/aplc" if home else ""


class Compiler:
    """Settings, and the passes that are known. What is not given here is as of `aplc run`.

    `device` is a record of a machine for which plans are chosen; `parameters` are tuning parameters; `cache` is the
    folder for compiled objects ("" for none); `disable` has passes to leave out.
    """

    def __init__(
        self,
        *,
        device: str = "",
        parameters: Optional[Mapping[str, int]] = None,
        cache: Optional[str] = None,
        temporary: Optional[str] = None,
        cc: str = "cc",
        c_flags: Sequence[str] = (),
        disable: Sequence[str] = (),
        verify: bool = True,
        seed: int = 1,
        cuda_device: int = 0,
        cuda_folders: Sequence[str] = (),
    ):
        self._raw = _apl.Compiler()
        self._raw.set("device", device)
        self._raw.set("cache", _cache_folder() if cache is None else cache)
        self._raw.set("temporary", temporary or _os.environ.get("TMPDIR") or "/tmp")
        self._raw.set("cc", cc)
        self._raw.set("c-flags", " ".join(c_flags))
        self._raw.set("disable", ",".join(disable))
        self._raw.set("verify", "1" if verify else "0")
        self._raw.set("seed", str(seed))
        self._raw.set("cuda-device", str(cuda_device))
        self._raw.set("cuda-folders", ":".join(cuda_folders))
        self._raw.set_parameters(dict(parameters or {}))

    # -- Passes

    def add_pass(
        self,
        name: str,
        run: Callable[..., Optional[str]],
        *,
        summary: str = "",
        stages: Sequence[str] = (),
        options: Optional[Mapping[str, Union[bool, int, str]]] = None,
    ) -> None:
        """A pass in Python: `run(module, remark, **options)` changes the module, or gives the text of another.

        `remark(message, kind=..., code=..., line=..., column=...)` says what it did. An exception ends the pipeline
        and is raised by it.
        """

        # The compiler has the pass; what is kept on both sides would never go.
        compiler = _weakref.ref(self)

        def raw(theirs, given, remark):
            def say(message, *, kind="applied", code="remark", line=0, column=0):
                remark(kind, code, message, line, column)

            module = Module(theirs, compiler())
            text = run(module, say, **given)
            if text is not None:
                module.ir = text

        self._raw.add_pass(name, raw, summary, list(stages), dict(options or {}))

    def insert(self, point: str, pipeline: str) -> None:
        """Lets a pipeline run at a point of the standard ones ("soac-end")."""
        self._raw.insert(f"{point}:{pipeline}")

    def load_plugin(self, path: Union[str, _os.PathLike]) -> None:
        """A pass plug-in in C++."""
        self._raw.load_plugin(_os.fspath(path))

    @property
    def passes(self) -> dict[str, str]:
        """The passes that are known, each with what it does."""
        return dict(self._raw.passes())

    def standard_pipeline(self, backend: str = "c", until: str = "memory") -> str:
        return self._raw.standard_pipeline(backend, until)

    # -- Programs

    def parse(self, source: Union[str, _os.PathLike], name: Optional[str] = None) -> "Module":
        """A module of a file (a path, or a text that ends in .fut or .aplir), of Futhark source or of textual IR."""
        if isinstance(source, _os.PathLike) or (
            "\n" not in source and source.endswith((".fut", ".aplir")) and " " not in source.strip()
        ):
            path = _os.fspath(source)
            with open(path, encoding="utf-8") as file:
                text = file.read()
            return Module(self._raw.parse(name or path, text, path.endswith(".aplir")), self)
        is_ir = source.lstrip().startswith("stage ")
        return Module(self._raw.parse(name or ("module.aplir" if is_ir else "program.fut"), source, is_ir), self)

    def compile(
        self, source: Union[str, _os.PathLike, "Module"], backend: str = "c", name: Optional[str] = None
    ) -> "Program":
        module = source if isinstance(source, Module) else self.parse(source, name)
        return module.load(backend)

    def _remarks(self) -> tuple[Remark, ...]:
        return tuple(Remark(**{**r, "facts": dict(r["facts"])}) for r in self._raw.remarks())


class Module:
    """A module of the IR at some stage: "soac", "kernel" or "memory"."""

    def __init__(self, raw: Any, compiler: Compiler):
        self._raw = raw
        self._compiler = compiler
        self.remarks: tuple[Remark, ...] = ()  # of what ran last

    @property
    def stage(self) -> str:
        return self._raw.stage

    @property
    def ir(self) -> str:
        """The module as textual IR. Setting it replaces the module by that of the text, which is verified."""
        return self._raw.text()

    @ir.setter
    def ir(self, text: str) -> None:
        self._raw.replace(text)

    @property
    def source(self) -> str:
        return self._raw.source

    @property
    def entries(self) -> dict[str, Entry]:
        return _entries(self._raw.entries())

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All statements, each before those inside of it."""
        return tuple(Statement(*s) for s in self._raw.statements())

    def copy(self) -> "Module":
        return Module(self._raw.copy(), self._compiler)

    def _call(self, function: Callable, *arguments: Any) -> Any:
        try:
            return function(self._raw, *arguments)
        finally:
            self.remarks = self._compiler._remarks()

    def run(self, pipeline: str) -> "Module":
        """Runs passes, or the standard pipeline up to a stage if that is its name; gives itself."""
        self._call(self._compiler._raw.run, pipeline)
        return self

    def load(self, backend: str = "c") -> "Program":
        """A program in this process: "c", "cuda", or "emulate" for a GPU whose every access is checked."""
        raw = self._call(self._compiler._raw.load, backend)
        return Program(raw, self.remarks, backend)

    def interpret(self, entry: str, *arguments: Any) -> Any:
        """What the module means, by the interpreter, on arrays and numbers."""
        results = self._compiler._raw.interpret(self._raw, entry, _flat(_entry(self.entries, entry, "module"), arguments))
        results = [r[()] if r.ndim == 0 else r for r in results]
        return results[0] if len(results) == 1 else tuple(results)

    def emit(self, dialect: str = "c") -> str:
        """The text of a program in "c", "cuda" or "hip"."""
        return self._call(self._compiler._raw.emit_program, dialect)

    def kernel(self, entry: str = "", dialect: str = "cuda", sizes: Optional[Mapping[str, int]] = None) -> str:
        """One entry's kernels and a function that launches them."""
        self._compiler._raw.set_sizes(dict(sizes or {}))
        return self._call(self._compiler._raw.emit_kernel, dialect, entry)

    def library(self, name: str, dialect: str = "c") -> tuple[str, str, str]:
        """A library with Futhark's C API: its source, header and manifest."""
        return self._call(self._compiler._raw.emit_library, dialect, name)

    def explain(self, sizes: Optional[Mapping[str, int]] = None) -> Text:
        """What became of each line, as `aplc explain` says it."""
        self._compiler._raw.set_sizes(dict(sizes or {}))
        return Text(self._call(self._compiler._raw.explain))

    def report(self, sizes: Optional[Mapping[str, int]] = None) -> Page:
        """A page about the program, as of `aplc report`."""
        self._compiler._raw.set_sizes(dict(sizes or {}))
        return Page(self._call(self._compiler._raw.report))

    def __repr__(self) -> str:
        return f"<module of stage {self.stage} with entries {', '.join(self.entries)}>"

    def _repr_html_(self) -> str:
        return f"<pre>{_html.escape(self.ir)}</pre>"


class Matrix:
    """A sparse operand of one entry of a program, packed once for many calls."""

    def __init__(self, raw: Any):
        self._raw = raw

    @property
    def shape(self) -> tuple[int, int]:
        return self._raw.shape

    @property
    def nnz(self) -> int:
        return self._raw.nnz


def _is_scipy(value: Any) -> bool:
    return hasattr(value, "tocsr") and hasattr(value, "nnz")


def _csr(matrix: Any) -> Any:
    """Compressed rows whose columns rise, without duplicates; a copy only where that is not so yet."""
    if len(matrix.shape) != 2:
        raise ValueError(f"a sparse matrix has 2 dims, not {len(matrix.shape)}")
    if matrix.shape[1] > 2**31 - 1:
        raise ValueError(f"a sparse matrix has 2^31 - 1 columns at most, not {matrix.shape[1]}")
    csr = matrix.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _converted(values: Any, type_: str, what: str) -> Any:
    """Elements as those of a type that can hold them; numbers of floats are rounded, nothing else is lost."""
    if type_ not in _NUMPY:
        raise TypeError(f"{what}: there are no numbers of {type_} in NumPy; an array of them is wanted")
    wanted = _np.dtype(_NUMPY[type_])
    given = _np.asarray(values)
    if given.size and not (
        _np.can_cast(given.dtype, wanted, "same_kind") or (given.dtype.kind in "iu" and wanted.kind in "iu")
    ):
        raise TypeError(f"{what}: elements of {given.dtype} are no {type_}")
    made = _np.ascontiguousarray(given, dtype=wanted)
    if wanted.kind in "iu" and given.size and not (made == given).all():
        raise OverflowError(f"{what}: an element that {type_} cannot hold")
    return made.reshape(given.shape)


_NUMPY = {
    "i8": _np.int8, "i16": _np.int16, "i32": _np.int32, "i64": _np.int64, "u8": _np.uint8, "u16": _np.uint16,
    "u32": _np.uint32, "u64": _np.uint64, "f16": _np.float16, "f32": _np.float32, "f64": _np.float64, "bool": _np.bool_,
}  # fmt: skip


def _entry(entries: Mapping[str, Entry], name: str, what: str) -> Entry:
    if name not in entries:
        raise AttributeError(f"the {what} has no entry {name!r}; it has {', '.join(entries)}")
    return entries[name]


def _flat(entry: Entry, arguments: Sequence[Any]) -> list:
    """One object for each value: tuples and records in their parts, lists as arrays."""
    if len(arguments) != len(entry.params):
        raise TypeError(f"entry {entry.name} takes {len(entry.params)} arguments, {len(arguments)} are given")
    values: list = []

    def add(value: Any) -> None:
        if isinstance(value, Mapping):
            for name in sorted(value):
                add(value[name])
        elif isinstance(value, tuple):
            for part in value:
                add(part)
        else:
            values.append(value)

    for param, argument in zip(entry.params, arguments):
        before = len(values)
        if param.values == 1:
            values.append(argument)
        else:
            add(argument)
        if len(values) - before != param.values:
            raise TypeError(f"argument {param.name} of type {param.type} has {param.values} parts")
    for k, (value, wanted) in enumerate(zip(values, entry.inputs)):
        if isinstance(value, list) and wanted.rank > 0:
            values[k] = _converted(value, wanted.type, f"argument {Program._operand(entry, k)} of entry {entry.name}")
    return values


class Program:
    """A loaded program: its entries are its methods.

    Arrays of the host are read where they are by backend "c", arrays of the device by "cuda"; results are arrays
    that own the program's memory: of NumPy, or of torch or JAX where an argument was one of theirs.
    """

    def __init__(self, raw: Any, remarks: tuple[Remark, ...], backend: str):
        self._raw = raw
        self._plans: dict[str, str] = {}
        self.remarks = remarks  # of the passes that made it
        self.backend = backend
        self.entries = _entries(raw.entries())

    def __getattr__(self, name: str) -> Callable[..., Any]:
        # Copiers and debuggers ask for attributes of objects that have none yet.
        entries = self.__dict__.get("entries", {})
        if name.startswith("_") or name not in entries:
            raise AttributeError(f"the program has no entry {name!r}; it has {', '.join(entries)}")

        def entry(*arguments: Any, wait: bool = True) -> Any:
            return self.call(name, *arguments, wait=wait)

        entry.__name__ = name
        params = ", ".join(f"{p.name}: {p.type}" for p in entries[name].params)
        entry.__doc__ = f"{name}({params}) -> {', '.join(entries[name].results)}"
        return entry

    # As a function is: a copy is the same code.
    def __copy__(self) -> "Program":
        return self

    def __deepcopy__(self, memo: Any) -> "Program":
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a program is code in this process and cannot be pickled; compile it in each process")

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *self.entries]

    def call(self, name: str, *arguments: Any, wait: bool = True) -> Any:
        """Calls an entry; several results are a tuple. With `wait` false, kernels of a GPU may still run when it
        returns, in order on the stream of the program; what they find wrong is then the error of a later call."""
        entry = _entry(self.entries, name, "program")
        values = _flat(entry, arguments)
        sparse = {}
        for k, wanted in enumerate(entry.inputs):
            if wanted.sparse and _is_scipy(values[k]):
                values[k] = self.matrix(name, self._operand(entry, k), values[k])
            if isinstance(values[k], Matrix):
                sparse[k] = values[k] = values[k]._raw
        results = self._raw.call(name, values, _like(values), wait)
        for k, output in enumerate(entry.outputs):
            if output.pattern is not None:
                results[k] = self._with_pattern(results[k], sparse.get(output.pattern), values[output.pattern])
        return results[0] if len(results) == 1 else tuple(results)

    @staticmethod
    def _operand(entry: Entry, value: int) -> str:
        for param in entry.params:
            if value < param.values:
                return param.name
            value -= param.values
        raise AssertionError(value)

    @staticmethod
    def _with_pattern(values: Any, matrix: Any, argument: Any) -> Any:
        """A result with the non-zeros of an argument: sparse if that was, else dense."""
        if matrix is None:
            dense = _np.asarray(argument)
            result = _np.zeros(dense.shape, dtype=values.dtype)
            result[dense != 0] = values
            return result
        from scipy import sparse

        return sparse.csr_array((values, matrix.column, matrix.row_start), shape=matrix.shape)

    def matrix(self, entry: str, operand: str, matrix: Any) -> Matrix:
        """A matrix of scipy.sparse as an operand of an entry, packed once for many calls. Its elements are converted
        to the operand's type. A plan that was set for the operand, and is for this matrix, is followed."""
        csr = _csr(matrix)
        known = _entry(self.entries, entry, "program")
        type_ = next((t.type for k, t in enumerate(known.inputs) if self._operand(known, k) == operand), "")
        rows, columns = csr.shape
        return Matrix(
            self._raw.matrix(
                entry,
                operand,
                rows,
                columns,
                _np.ascontiguousarray(csr.indptr, dtype=_np.int64),
                _np.ascontiguousarray(csr.indices, dtype=_np.int32),
                _converted(csr.data, type_, f"matrix for {operand}") if type_ else csr.data,
            )
        )

    def set_plan(self, operand: str, plan: Optional[str]) -> None:
        """The plan of a search for matrices of an operand that are made from now on; None takes it away."""
        plans = {name: text for name, text in self._plans.items() if name != operand}
        if plan is not None:
            plans[operand] = plan
        self._raw.set_plans(list(plans.items()))
        self._plans = plans

    def set_stream(self, stream: int) -> None:
        """Backend "cuda": the stream (its handle) on which all that follows happens."""
        self._raw.set_stream(stream)

    def wait(self) -> None:
        """Waits for all that was launched, and raises what it found wrong."""
        self._raw.wait()

    @property
    def microseconds(self) -> float:
        """The time of the last call that waited, without what copies inputs."""
        return self._raw.microseconds

    def addresses(self, name: str, *arguments: Any) -> list[int]:
        """Where a call reads its arguments: 0 for scalars and for what it has to copy."""
        return self._raw.addresses(name, _flat(_entry(self.entries, name, "program"), arguments))

    def __repr__(self) -> str:
        return f"<program of backend {self.backend} with entries {', '.join(self.entries)}>"


def _like(values: Sequence[Any]) -> Any:
    for value in values:
        package = type(value).__module__.partition(".")[0]
        if package == "torch":
            return _apl.Like.torch
        if package in ("jax", "jaxlib"):
            return _apl.Like.jax
    return _apl.Like.numpy


def parse(source: Union[str, _os.PathLike], name: Optional[str] = None, **settings: Any) -> Module:
    """A module of Futhark source or textual IR: a text, or the path of a file. Settings are those of Compiler."""
    return Compiler(**settings).parse(source, name)


def compile(
    source: Union[str, _os.PathLike, Module], backend: str = "c", name: Optional[str] = None, **settings: Any
) -> Program:
    """A program of Futhark source or textual IR. Settings are those of Compiler."""
    if isinstance(source, Module):
        return source.load(backend)
    return Compiler(**settings).compile(source, backend, name)


def search(
    matrix: Any,
    width: int,
    *,
    operation: str = "spmm",
    element_bytes: int = 4,
    device: str = "cpu",
    seconds: float = 0,
) -> Text:
    """A plan for a matrix of scipy.sparse, as `aplc sparse search` finds it: how it is cut into tiles for products
    ("spmm", or "sddmm") whose dense loop has `width` iterations. `seconds` 0: no limit."""
    csr = _csr(matrix)
    rows, columns = csr.shape
    return Text(
        _apl.search_plan(
            rows,
            columns,
            _np.ascontiguousarray(csr.indptr, dtype=_np.int64),
            _np.ascontiguousarray(csr.indices, dtype=_np.int32),
            operation,
            width,
            element_bytes,
            device,
            seconds,
        )
    )
