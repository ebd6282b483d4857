"""Shapes of results from those of arguments, as an entry declares them."""

from __future__ import annotations

import ast
import operator
from typing import Any, Mapping, Optional, Sequence

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


class Unknown(Exception):
    """A size that only the entry itself decides."""


def size(text: str, known: Mapping[str, Any]) -> Any:
    """The value of a size such as `2*n + 1`; whatever has arithmetic may stand for a name."""

    def value(node: ast.AST) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and node.id in known:
            return known[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        raise Unknown(text)

    try:
        return value(ast.parse(text, mode="eval").body)
    except SyntaxError:
        raise Unknown(text) from None


def bind(inputs: Sequence[Any], shapes: Sequence[Optional[Sequence[Any]]], numbers: Sequence[Any]) -> dict[str, Any]:
    """Values of the names in the inputs' shapes. `shapes` has None for a number, which is in `numbers` if known."""
    known: dict[str, Any] = {}
    for wanted, shape, number in zip(inputs, shapes, numbers):
        if shape is None:
            if number is not None:
                known[wanted.name] = number
            continue
        if len(shape) != wanted.rank:
            raise ValueError(f"argument {wanted.name} has {len(shape)} dims, {wanted.rank} are needed")
        for text, given in zip(wanted.shape, shape):
            if text.isidentifier():
                known.setdefault(text, given)
    return known
