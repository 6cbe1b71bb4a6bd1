"""What a stored object keeps in memory, in which a cluster has hundreds of thousands."""

from __future__ import annotations

import tracemalloc

import pytest

from pilothouse.apiserver.storage.object import ObjectCodec

CODEC = ObjectCodec("Thing", "v1", lambda obj: {})
HEADER = 100
"""Bytes that any bytes object may take beside its own."""


@pytest.mark.parametrize("size", [10, 900, 4_500, 70_000])
def test_an_encoded_object_holds_no_more_memory_than_its_bytes(size: int) -> None:
    obj = {"metadata": {"name": "a"}, "data": "x" * size}
    CODEC.encode(obj)
    tracemalloc.start()
    try:
        encoded = CODEC.encode(obj)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held <= len(encoded) + HEADER
