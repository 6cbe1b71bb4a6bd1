"""The Range header: `bytes=0-9`, `bytes=500-`, `bytes=-500`, and several of these with commas between them."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.machinery.dataclass import dataclass

_MAX_RANGES = 64
"""Those who want more pieces get everything: each piece costs a head of its own, which is more than was asked for."""


class InvalidRange(ValueError):
    """The message is the text of the answer."""

    def __init__(self, *, overlaps_nothing: bool = False) -> None:
        super().__init__("invalid range" + (": failed to overlap" if overlaps_nothing else ""))
        self.overlaps_nothing = overlaps_nothing


@dataclass(frozen=True, slots=True)
class ByteRange:
    start: int
    length: int

    def header(self, size: int) -> str:
        return f"bytes {self.start}-{self.start + self.length - 1}/{size}"

    def of(self, body: bytes) -> bytes:
        return body[self.start : self.start + self.length]


def parse_range(header: str, size: int) -> list[ByteRange]:
    """The ranges within so many bytes; none where everything is to be sent. Raises InvalidRange."""
    if not header:
        return []
    if not header.startswith("bytes="):
        raise InvalidRange
    specs = [spec.strip(" \t") for spec in header.removeprefix("bytes=").split(",", _MAX_RANGES)]
    wanted = [spec for spec in specs if spec]
    if len(specs) > _MAX_RANGES or not wanted:
        return []
    found = list(_within(wanted, size))
    if not found and size:
        raise InvalidRange(overlaps_nothing=True)
    return found if sum(each.length for each in found) <= size else []


def _within(specs: list[str], size: int) -> Iterator[ByteRange]:
    """Leaves out those that begin behind the end."""
    for spec in specs:
        first, dash, last = (part.strip(" \t") for part in spec.partition("-"))
        if not dash:
            raise InvalidRange
        if not first:
            length = min(_number(last), size)
            yield ByteRange(size - length, length)
        elif (start := _number(first)) < size:
            end = min(_number(last), size - 1) if last else size - 1
            if end < start:
                raise InvalidRange
            yield ByteRange(start, end - start + 1)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidRange
    return int(text)
