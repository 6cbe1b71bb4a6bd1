"""PEM: what Go finds, and in linear time."""

from __future__ import annotations

import time

import pytest

from pilothouse.machinery.pem import pem_blocks

GOOD = b"-----BEGIN A B-----\nAAAA\nBBBB\n-----END A B-----\n"


def found(data: bytes) -> list[tuple[str, bool, int]]:
    return [(block.type, block.has_headers, len(block.body)) for block in pem_blocks(data)]


@pytest.mark.parametrize(
    ("data", "blocks"),
    [
        (GOOD, [("A B", False, 6)]),
        (GOOD.replace(b"\n", b"\r\n"), [("A B", False, 6)]),
        (GOOD.rstrip(), [("A B", False, 6)]),
        (b"before\n" + GOOD + b"between\n" + GOOD, [("A B", False, 6)] * 2),
        (b"-----BEGIN A-----\nKey: value\n\nAAAA\n-----END A-----\n", [("A", True, 3)]),
        (b"-----BEGIN A-----\n-----END A-----\n", [("A", False, 0)]),
        (b"-----BEGIN A-----\n" + GOOD, [("A B", False, 6)]),
        (b"x" + GOOD, []),
        (GOOD.replace(b"END A B", b"END A"), []),
        (GOOD.replace(b"AAAA", b"A*A"), []),
        (b"-----BEGIN A-----\nAAAA\n", []),
        (b"", []),
    ],
)
def test_blocks_are_found_as_go_finds_them(data: bytes, blocks: list[tuple[str, bool, int]]) -> None:
    assert found(data) == blocks


@pytest.mark.parametrize(
    "part", [b"-----BEGIN A-----\n", b"-----END A-----\n", b"-----END ", b"-----END A-----  ", b"\n"]
)
def test_data_without_blocks_is_read_once(part: bytes) -> None:
    start = time.process_time()
    assert found(part * (3_000_000 // len(part))) == []
    assert time.process_time() - start < 10
