"""Where audit events go: files that are rotated, batches, and what becomes of events that are too large."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiserver.audit.backends import BatchBackend, BatchConfig, BlockingBackend
from pilothouse.apiserver.audit.log_backend import LogBackend, RotatedFile, legacy_line
from pilothouse.apiserver.audit.truncation import Truncation


def test_a_file_that_has_grown_is_set_aside_and_old_ones_go(tmp_path: Path) -> None:
    moments = iter(range(1_700_000_000, 1_800_000_000))
    file = RotatedFile(tmp_path / "audit.log", max_bytes=20, max_backups=2, now=lambda: float(next(moments)))
    for number in range(8):
        file.write(b"line %d....\n" % number)
    file.close()
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 3
    assert kept[-1].name == "audit.log"
    assert b"".join(path.read_bytes() for path in kept).endswith(b"line 5....\nline 6....\nline 7....\n")


def test_what_was_set_aside_can_be_compressed(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "audit.log", max_bytes=5, compress=True)
    file.write(b"first\n")
    file.write(b"second\n")
    file.close()
    (packed,) = tmp_path.glob("*.gz")
    assert gzip.decompress(packed.read_bytes()) == b"first\n"


def test_a_log_goes_on_where_it_ended_and_only_its_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "audit.log"
    for number in range(2):
        backend = LogBackend(RotatedFile(path))
        backend.send([{"auditID": str(number)}])
        backend.close()
    assert path.read_bytes() == b'{"auditID":"0"}\n{"auditID":"1"}\n'
    assert path.stat().st_mode & 0o777 == 0o600


async def test_events_are_sent_in_batches_and_none_is_lost_at_the_end() -> None:
    sent: list[list[Any]] = []
    twice = asyncio.Event()

    async def send(events: list[Any]) -> None:
        sent.append(events)
        if len(sent) == 2:
            twice.set()

    backend = BatchBackend("test", send, BatchConfig(max_size=3, max_wait=3600.0))
    running = asyncio.ensure_future(backend.run())
    for number in range(7):
        assert await backend.process({"n": number})
    await twice.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [[event["n"] for event in batch] for batch in sent] == [[0, 1, 2], [3, 4, 5], [6]]


async def test_events_wait_in_a_buffer_that_is_bounded_in_bytes() -> None:
    sent: list[Any] = []
    once = asyncio.Event()

    async def send(events: list[Any]) -> None:
        sent.extend(events)
        once.set()

    backend = BatchBackend("test", send, BatchConfig(buffer_bytes=1000, max_size=1))
    for number in range(5):
        assert await backend.process({"n": number, "responseObject": orjson.Fragment(b'"%b"' % (b"x" * 400))})
    running = asyncio.ensure_future(backend.run())
    await once.wait()
    await asyncio.sleep(0)
    assert [event["n"] for event in sent] == [0, 1]
    assert await backend.process({"n": 5, "responseObject": orjson.Fragment(b'"%b"' % (b"x" * 900))}), (
        "there is room again"
    )
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [event["n"] for event in sent] == [0, 1, 5]


async def test_when_the_buffer_is_full_requests_go_on_and_events_are_lost() -> None:
    async def never(events: list[Any]) -> None:
        raise AssertionError

    backend = BatchBackend("test", never, BatchConfig(buffer_size=1))
    assert await backend.process({}) is True
    assert await backend.process({}) is True


@pytest.mark.parametrize(
    ("strict", "stage", "kept"), [(False, "RequestReceived", True), (True, "RequestReceived", False)]
)
async def test_only_a_strict_log_keeps_a_request_from_going_on_when_it_can_not_write(
    strict: bool, stage: str, kept: bool
) -> None:
    async def full(events: list[Any]) -> None:
        raise OSError(28, "No space left on device")

    assert await BlockingBackend("test", full, strict=strict, truncation=None).process({"stage": stage}) is kept


@given(
    st.lists(st.integers(min_value=0, max_value=300), max_size=20),
    st.integers(min_value=100, max_value=400),
    st.integers(min_value=400, max_value=800),
)
def test_no_event_and_no_batch_is_larger_than_allowed(sizes: list[int], max_event: int, max_batch: int) -> None:
    events = [{"auditID": str(i), "requestObject": "x" * size} for i, size in enumerate(sizes)]
    batches = list(Truncation(max_event, max_batch).batches(events))
    for batch in batches:
        assert all(len(orjson.dumps(event)) <= max_event for event in batch)
        assert sum(len(orjson.dumps(event)) for event in batch) <= max_batch
    kept = [event["auditID"] for batch in batches for event in batch]
    assert kept == sorted(kept, key=int)
    small = [event["auditID"] for event in events if len(orjson.dumps(event)) <= max_event]
    assert set(small) <= set(kept)


def test_the_old_form_of_a_line() -> None:
    event = {
        "auditID": "1",
        "stage": "ResponseComplete",
        "verb": "get",
        "requestURI": "/api",
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z",
        "sourceIPs": ["192.0.2.1"],
        "user": {"username": "alice", "groups": ["a", "b"]},
        "userAgent": "kubectl",
        "responseStatus": {"code": 200},
    }
    assert legacy_line(event) == (
        '2026-01-01T00:00:00.000000Z AUDIT: id="1" stage="ResponseComplete" ip="192.0.2.1" method="get" user="alice" '
        r'groups="\"a\",\"b\"" as="<self>" asgroups="<lookup>" user-agent="kubectl" namespace="<none>" uri="/api" '
        'response="200"'
    )
