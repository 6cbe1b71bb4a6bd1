"""What etcd refuses, and in which words that is passed on."""

from __future__ import annotations

import subprocess
import sys

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiserver.storage.errors import KeyNotFound, StorageError, TooLarge, Unavailable
from pilothouse.apiserver.storage.etcd.client import EtcdEndpoint, EtcdTlsFiles
from pilothouse.apiserver.storage.etcd.failures import CallFailure, failure_of
from pilothouse.apiserver.storage.etcd.messages import EtcdKeyRange, prefix_end
from pilothouse.apiserver.storage.etcd.store import EtcdStore


@pytest.mark.parametrize("size", [1_600_000, 3_000_000], ids=["more than etcd takes", "more than its transport takes"])
async def test_a_value_that_is_too_large_is_refused_as_such(etcd_store: EtcdStore, size: int) -> None:
    entry = await etcd_store.create("/registry/a", b"")
    with pytest.raises(TooLarge, match="large"):
        await etcd_store.update("/registry/a", b"x" * size, expected=entry.modified)
    assert await etcd_store.get("/registry/a") == entry


async def test_a_key_that_is_not_there_is_not_found_at_revision_zero_either(etcd_store: EtcdStore) -> None:
    """To etcd such a key has that revision."""
    with pytest.raises(KeyNotFound):
        await etcd_store.update("/registry/a", b"", expected=0)
    with pytest.raises(KeyNotFound):
        await etcd_store.delete("/registry/a", expected=0)
    assert await etcd_store.get("/registry/a") is None


def _failure(code: grpc.StatusCode, details: str, *, wrote: bool) -> CallFailure:
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), details=details)
    return failure_of(error, "http://member", wrote=wrote)


@pytest.mark.parametrize(
    ("code", "details", "uncertain"),
    [
        (grpc.StatusCode.UNAVAILABLE, "failed to connect to all addresses; last error: refused", False),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", False),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: too many requests", False),
        (grpc.StatusCode.UNAVAILABLE, "Stream removed (Socket closed)", True),
        (grpc.StatusCode.UNAVAILABLE, "etcdserver: request timed out, possibly due to connection lost", True),
        (grpc.StatusCode.UNAVAILABLE, "etcdserver: leader changed", True),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", True),
        (grpc.StatusCode.INTERNAL, "", True),
        (grpc.StatusCode.UNKNOWN, "", True),
    ],
)
def test_a_write_is_uncertain_unless_it_was_refused_or_never_sent(
    code: grpc.StatusCode, details: str, uncertain: bool
) -> None:
    failure = _failure(code, details, wrote=True)
    assert isinstance(failure.error, Unavailable)
    assert failure.error.uncertain is uncertain
    assert not (failure.repeatable and uncertain)
    reading = _failure(code, details, wrote=False)
    assert isinstance(reading.error, Unavailable)
    assert not reading.error.uncertain


@pytest.mark.parametrize("code", [grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED])
def test_a_client_that_etcd_does_not_want_is_told_so_and_does_not_ask_elsewhere(code: grpc.StatusCode) -> None:
    failure = _failure(code, "etcdserver: permission denied", wrote=False)
    assert not failure.of_member
    assert not isinstance(failure.error, Unavailable)
    assert str(failure.error) == "etcd at http://member refuses the request: etcdserver: permission denied"


def test_an_endpoint_that_is_no_url_is_refused() -> None:
    with pytest.raises(StorageError, match='"localhost:2379" is no URL of an etcd member'):
        EtcdEndpoint("localhost:2379", EtcdTlsFiles())


@given(prefix=st.text(max_size=3), key=st.text(max_size=4), after=st.text(max_size=4))
def test_a_range_holds_the_keys_with_the_prefix_behind_another(prefix: str, key: str, after: str) -> None:
    keys = EtcdKeyRange.under(prefix, after=after)
    name = key.encode()
    inside = keys.start <= name and (keys.end == b"\0" or name < keys.end)
    if name > b"\0":  # what etcd has for the lowest key
        assert inside == (key.startswith(prefix) and (not after or name > after.encode()))
    assert not (keys.is_empty and inside)


def test_the_end_of_a_prefix_carries_over() -> None:
    assert [prefix_end(prefix) for prefix in (b"/a/", b"a\xff", b"\xff\xff", b"")] == [b"/a0", b"b", b"\0", b"\0"]


def test_nothing_but_the_store_on_etcd_needs_grpc() -> None:
    """It is an optional package, and takes a tenth of a second to import."""
    program = "import sys, pilothouse.cli.main, pilothouse.controlplane.run; print('grpc' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
