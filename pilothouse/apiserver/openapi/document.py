"""A document as it is kept: compressed, since it is some megabytes that are asked for seldom and mostly with gzip."""

from __future__ import annotations

import gzip
import hashlib
import time
from dataclasses import field

import orjson

from pilothouse.machinery.dataclass import dataclass

_LEVEL = 1


@dataclass(frozen=True, slots=True)
class Document:
    """`etag` is the hash of what the document says, without quotation marks; `made` is when it was first said."""

    compressed: bytes
    etag: str
    made: float = field(default_factory=time.time, compare=False)

    @classmethod
    def of(cls, plain: bytes, *, etag: str = "") -> Document:
        """Another form of a document has the same tag as the document itself."""
        return cls(gzip.compress(plain, _LEVEL, mtime=0), etag or hashlib.sha512(plain).hexdigest().upper())

    def plain(self) -> bytes:
        return gzip.decompress(self.compressed)


def as_protobuf(document: Document) -> Document:
    """Return the OpenAPI v2 document in gnostic's protobuf encoding, with the same ETag."""
    from pilothouse.apiserver.openapi.gnostic.document import encode_document

    return Document.of(encode_document(orjson.loads(document.plain())), etag=document.etag)
