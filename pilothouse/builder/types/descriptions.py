"""What authors wrote about their classes and fields, as descriptions of schemas."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise


def class_description(cls: type) -> str:
    """Return the class's own docstring; empty for one that only a dataclass decorator wrote."""
    text = cls.__dict__.get("__doc__") or ""
    is_made = text == cls.__name__ or text.startswith(f"{cls.__name__}(")
    return "" if is_made else inspect.cleandoc(text)


def field_descriptions(cls: type) -> dict[str, str]:
    """Return the strings that stand below the fields of a class and its bases; nothing where there is no source."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        found.update(_strings_below_fields(base))
    return found


def _strings_below_fields(cls: type) -> Iterator[tuple[str, str]]:
    try:
        parsed = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return
    body = parsed.body[0].body if isinstance(parsed.body[0], ast.ClassDef) else []
    for field, below in pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
