"""What apl says, as exceptions: one class for each of those whose fault it may be."""

from __future__ import annotations

from typing import NamedTuple, Optional


class Place(NamedTuple):
    """Where something stands; lines and columns count from 1, the range is inclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Note(NamedTuple):
    message: str
    place: Optional[Place]


class Diagnostic(NamedTuple):
    severity: str  # "error", "warning", "note"
    fault: int  # the exit code that aplc would have
    code: str  # "type.mismatch"
    message: str
    place: Optional[Place]
    notes: tuple[Note, ...]
    hint: str
    text: str  # all of it, with the line of the source


class Error(Exception):
    """What went wrong. The first error decides `code`, `fault`, `message` and `place`; `diagnostics` has all."""

    def __init__(self, diagnostics: list[Diagnostic]):
        self.diagnostics = diagnostics
        first = next((d for d in diagnostics if d.severity == "error"), diagnostics[0])
        self.code = first.code
        self.fault = first.fault
        self.message = first.message
        self.place = first.place
        self.notes = first.notes
        self.hint = first.hint
        super().__init__("".join(d.text for d in diagnostics).rstrip("\n"))

    # Errors of worker processes are pickled, and made again by their diagnostics, not by their text.
    def __reduce__(self) -> tuple:
        return type(self), (self.diagnostics,), self.__dict__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.diagnostics == other.diagnostics

    def __hash__(self) -> int:
        return hash(tuple(d.text for d in self.diagnostics))


class ProgramError(Error):
    """The program is wrong, or its arguments are: `syntax.*`, `type.*`, `consume.*`, `ir.*`, `run.*`."""


class LimitationError(Error, NotImplementedError):
    """apl cannot do this, or this machine cannot: `unsupported.*`."""


class CommandError(Error, ValueError):
    """An argument makes no sense: `command.*`."""


class BugError(Error):
    """A bug of apl: `bug.*`."""


class MachineError(Error, OSError):
    """No memory, a full disk: `machine.*`."""


_CLASSES = {2: ProgramError, 3: LimitationError, 64: CommandError, 70: BugError, 71: MachineError}


def make(parts: list) -> Error:
    """Called by the compiled module."""

    def place(given):
        return None if given is None else Place(*given)

    diagnostics = [
        Diagnostic(
            ("error", "warning", "note")[severity],
            fault,
            code,
            message,
            place(where),
            tuple(Note(text, place(at)) for text, at in notes),
            hint,
            text,
        )
        for severity, fault, code, message, where, notes, hint, text in parts
    ]
    first = next((d for d in diagnostics if d.severity == "error"), diagnostics[0])
    return _CLASSES[first.fault](diagnostics)
