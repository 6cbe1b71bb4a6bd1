"""PEM as Go reads it: what stands between blocks is ignored, and a block that is damaged is no block."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from pilothouse.machinery.dataclass import dataclass

_BLOCK = re.compile(
    rb"^-----BEGIN ([^\r\n]*?)-----[ \t]*\r?\n((?:[^\r\n:]+:[^\r\n]*\r?\n)*)(.*?)^-----END \1-----",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class PemBlock:
    type: str
    has_headers: bool
    body: bytes


def pem_blocks(data: bytes) -> Iterator[PemBlock]:
    for match in _BLOCK.finditer(data):
        try:
            body = base64.b64decode(b"".join(match[3].split()), validate=True)
        except binascii.Error:
            continue
        yield PemBlock(match[1].decode("utf-8", "replace"), bool(match[2]), body)
