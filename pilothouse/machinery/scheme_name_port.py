"""Names in proxy paths: `name`, `name:port` or `scheme:name:port`."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

_SCHEMES = ("", "http", "https")


@dataclass(frozen=True, slots=True)
class SchemeNamePort:
    """Scheme (may be empty), name, and port (a number, a name or empty)."""

    scheme: str
    name: str
    port: str


def split_scheme_name_port(text: str) -> SchemeNamePort | None:
    """Parse the name; None if it has none of the three forms."""
    parts = text.split(":")
    if len(parts) > 3:
        return None
    scheme, name, port = {1: ["", *parts, ""], 2: ["", *parts], 3: parts}[len(parts)]
    return SchemeNamePort(scheme, name, port) if name and scheme in _SCHEMES else None
