"""Requests to etcd, and decoding of entries and events."""

from __future__ import annotations

from aetcd import rpc

from pilothouse.apiserver.storage.errors import Compacted
from pilothouse.apiserver.storage.etcd.client import Message
from pilothouse.apiserver.storage.interface import Entry, Event, Revision
from pilothouse.machinery.dataclass import dataclass

# In etcd a zero byte as start is the lowest key, and as end means unbounded.
_FIRST = _NO_END = b"\0"


@dataclass(frozen=True, slots=True)
class EtcdKeyRange:
    """Keys with `start <= key < end`."""

    start: bytes
    end: bytes

    @staticmethod
    def under(prefix: str, *, after: str = "") -> EtcdKeyRange:
        """Return the range of keys with the prefix that are greater than `after`."""
        start = prefix.encode() or _FIRST
        return EtcdKeyRange(max(start, after.encode() + b"\0") if after else start, prefix_end(prefix.encode()))

    @property
    def is_empty(self) -> bool:
        return self.end != _NO_END and self.start >= self.end


def prefix_end(prefix: bytes) -> bytes:
    """Return the smallest key greater than every key with the prefix."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else _NO_END


# Never written: reading it yields the current revision at minimal cost.
_NO_KEY = b"\0"


def get(key: str) -> Message:
    return rpc.RangeRequest(key=key.encode())


def page(keys: EtcdKeyRange, *, at: Revision, limit: int) -> Message:
    return rpc.RangeRequest(key=keys.start, range_end=keys.end, revision=at, limit=limit)


def count(keys: EtcdKeyRange) -> Message:
    return rpc.RangeRequest(key=keys.start, range_end=keys.end, count_only=True)


def current_revision() -> Message:
    return rpc.RangeRequest(key=_NO_KEY, count_only=True)


def create(key: str, value: bytes, *, lease: int) -> Message:
    name = key.encode()
    absent = rpc.Compare(key=name, target=rpc.Compare.CREATE, result=rpc.Compare.EQUAL, create_revision=0)
    return rpc.TxnRequest(compare=[absent], success=[_put(name, value, lease)])


def update(key: str, value: bytes, *, expected: Revision, lease: int) -> Message:
    """Build an update. The transaction reads the key after the write, because a put does not return the create
    revision."""
    name = key.encode()
    return rpc.TxnRequest(
        compare=_at_revision(name, expected),
        success=[_put(name, value, lease), _exists_op(name)],
        failure=[_exists_op(name)],
    )


def delete(key: str, *, expected: Revision) -> Message:
    name = key.encode()
    remove = rpc.RequestOp(request_delete_range=rpc.DeleteRangeRequest(key=name, prev_kv=True))
    return rpc.TxnRequest(compare=_at_revision(name, expected), success=[remove], failure=[_exists_op(name)])


def watch(keys: EtcdKeyRange, *, start: Revision) -> Message:
    return rpc.WatchRequest(
        create_request=rpc.WatchCreateRequest(
            key=keys.start,
            range_end=keys.end,
            start_revision=start,
            prev_kv=True,
            progress_notify=True,
            fragment=True,
        )
    )


def progress() -> Message:
    return rpc.WatchRequest(progress_request=rpc.WatchProgressRequest())


def entry_of(pair: Message) -> Entry:
    # Foreign keys that are not UTF-8 must not break a listing or watch.
    return Entry(pair.key.decode(errors="surrogateescape"), pair.value, pair.create_revision, pair.mod_revision)


def event_of(event: Message) -> Event:
    """Decode an event. Raises Compacted if etcd has dropped the previous value."""
    pair = event.kv
    entry = None if event.type == rpc.Event.DELETE else entry_of(pair)
    if event.HasField("prev_kv"):
        return Event(pair.mod_revision, pair.key.decode(errors="surrogateescape"), entry, entry_of(event.prev_kv))
    if entry is None or entry.created != entry.modified:
        raise Compacted(pair.mod_revision - 1, pair.mod_revision)
    return Event(entry.modified, entry.key, entry, None)


def _put(name: bytes, value: bytes, lease: int) -> Message:
    return rpc.RequestOp(request_put=rpc.PutRequest(key=name, value=value, lease=lease))


def _exists_op(name: bytes) -> Message:
    return rpc.RequestOp(request_range=rpc.RangeRequest(key=name, keys_only=True))


def _at_revision(name: bytes, expected: Revision) -> list[Message]:
    """Compare the revision and existence: for etcd an absent key has revision 0."""
    return [
        rpc.Compare(key=name, target=rpc.Compare.MOD, result=rpc.Compare.EQUAL, mod_revision=expected),
        rpc.Compare(key=name, target=rpc.Compare.CREATE, result=rpc.Compare.GREATER, create_revision=0),
    ]
