"""Hash labels that distinguish pods of different templates."""

from __future__ import annotations

import zlib

import orjson

from pilothouse.machinery.names_generator import safe_encode
from pilothouse.machinery.objects import Json

POD_TEMPLATE_HASH = "pod-template-hash"
CONTROLLER_REVISION_HASH = "controller-revision-hash"


def template_hash(template: Json, collisions: int | None = None) -> str:
    """Return a short deterministic hash of template and collision count.

    Upstream hashes Go's printed struct, which is not reproducible here. Controllers that take over compare templates,
    never hashes.
    """
    data = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe_encode(str(zlib.crc32(data)))
