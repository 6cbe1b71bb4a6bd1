"""Every built-in kind with every field set, against the bytes that upstream's own encoder wrote."""

from __future__ import annotations

import orjson
import pytest
from recorded import recorded

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.protobuf.codec import ListPieces, decode, encode, encode_raw, gvk_of, supports
from pilothouse.machinery.protobuf.envelope import envelope

VECTORS = recorded("protobuf-vectors")
NAMES = sorted(path.stem for path in VECTORS.glob("*.json"))
WATCH_EVENT = GroupVersionKind("", "v1", "WatchEvent")
NO_KIND = GroupVersionKind("", "", "")


@pytest.mark.parametrize("name", NAMES)
def test_an_object_with_every_field_set_is_written_and_read_as_upstream_does(name: str) -> None:
    obj = orjson.loads((VECTORS / f"{name}.json").read_bytes())
    data = (VECTORS / f"{name}.pb").read_bytes()
    if "kind" in obj:
        assert supports(gvk_of(obj))
        assert encode(obj) == data
    else:
        assert envelope(NO_KIND, encode_raw(obj, WATCH_EVENT)) == data
    read = decode(data, default=WATCH_EVENT)
    assert read == obj
    assert orjson.dumps(read) == orjson.dumps(obj), "keys in upstream's order"


@pytest.mark.parametrize("name", ["core.v1.Pod", "apps.v1.Deployment"])
def test_a_list_of_messages_is_the_list_that_the_objects_would_make(name: str) -> None:
    obj = orjson.loads((VECTORS / f"{name}.json").read_bytes())
    gvk = gvk_of(obj)
    lists = GroupVersionKind(gvk.group, gvk.version, f"{gvk.kind}List")
    meta = {"resourceVersion": "7", "remainingItemCount": 3}
    whole = {"kind": lists.kind, "apiVersion": lists.api_version, "metadata": meta, "items": [obj, obj]}
    raw = encode_raw(obj, gvk)
    pieces = ListPieces(lists, meta)
    assert b"".join((pieces.head([len(raw)] * 2), *pieces.item(raw) * 2, pieces.tail())) == encode(whole)
