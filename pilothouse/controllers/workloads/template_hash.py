"""The labels that tell pods of one template from those of another."""

from __future__ import annotations

import zlib

import orjson

from pilothouse.machinery.names_generator import safe_encode
from pilothouse.machinery.objects import Json

POD_TEMPLATE_HASH = "pod-template-hash"
CONTROLLER_REVISION_HASH = "controller-revision-hash"


def template_hash(template: Json, collisions: int | None = None) -> str:
    """A short text that is the same for the same template and count of collisions.

    Upstream hashes Go's own print of the struct, which nobody else can make; who takes over from another compares
    templates, never hashes of different makers.
    """
    data = orjson.dumps(template, option=orjson.OPT_SORT_KEYS)
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe_encode(str(zlib.crc32(data)))
