"""What the codec knows about a message type, whether JSON shows it as an object, a list, a string or a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
import re
from collections.abc import Callable
from textwrap import indent

Lookup: TypeAlias = "Callable[[str], MessageType]"
"""From a full message name to its type."""


class MessageType(Protocol):
    """A message between its body on the wire (no tag, no length) and its JSON value.

    Types compile themselves when first used, so a reference to one is cheap and types may refer to themselves.
    """

    @property
    def empty(self) -> bytes:
        """The body that Go writes for the zero value."""
        ...

    @property
    def nilable(self) -> bool:
        """Whether Go holds it as a slice, so that the zero value is nil and is not written."""
        ...

    def zero(self) -> Any:
        """The JSON form of Go's zero value."""
        ...

    def write(self, value: Any, /) -> bytes:
        """The body for a JSON value that is not null."""
        ...

    def read(self, data: bytes, pos: int, end: int, into: Any, depth: int, /) -> Any:
        """The JSON value of the body data[pos:end]. A second occurrence of a message merges into the first."""
        ...


_ALONE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)


def fill(template: str, **parts: str) -> str:
    """The template with its parts. A block that is empty becomes `pass`; braces that name no part stay."""
    blocks = _ALONE.sub(lambda match: _block(match[1], parts[match[2]]), template)
    return re.sub(r"\{(\w+)\}", lambda match: parts.get(match[1], match[0]), blocks)


def _block(margin: str, lines: str) -> str:
    return indent(lines.rstrip("\n"), margin) if lines else f"{margin}pass"


def define(name: str, source: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function `name` that the source defines, with the namespace for its globals."""
    exec(compile(source, f"<{name}>", "exec"), namespace)
    function: Callable[..., Any] = namespace[name]
    return function
