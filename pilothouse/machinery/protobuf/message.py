"""MessageType, the contract of a message type, and the compilation of source templates.

A message is an object, a list, a string or a number in JSON. In a template, a placeholder alone on its line expands to
many lines with the same indentation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
import re
from collections.abc import Callable
from textwrap import indent

Lookup: TypeAlias = "Callable[[str], MessageType]"
"""Full message name → type."""


class MessageType(Protocol):
    """Converts between the body of a message (without tag and length) and its JSON value.

    Types are compiled on first use, so references are cheap and types may be recursive.
    """

    @property
    def empty(self) -> bytes:
        """Go's encoding of the zero value."""
        ...

    @property
    def nilable(self) -> bool:
        """Whether the Go type is a slice, whose zero value is nil and is not encoded."""
        ...

    def zero(self) -> Any:
        """Return the JSON form of Go's zero value."""
        ...

    def write(self, value: Any, /) -> bytes:
        """Encode a non-null JSON value."""
        ...

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int, /) -> Any:
        """Decode data[pos:end]. A second occurrence of a message merges into the first."""
        ...


_ALONE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)


def fill(template: str, **parts: str) -> str:
    """Return the expanded template. An empty block becomes `pass`; unknown placeholders stay."""
    blocks = _ALONE.sub(lambda match: _block(match[1], parts[match[2]]), template)
    return re.sub(r"\{(\w+)\}", lambda match: parts.get(match[1], match[0]), blocks)


def _block(margin: str, lines: str) -> str:
    return indent(lines.rstrip("\n"), margin) if lines else f"{margin}pass"


def define(name: str, source: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """Execute the source with the given globals, and return its function `name`."""
    exec(compile(source, f"<{name}>", "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    return function
