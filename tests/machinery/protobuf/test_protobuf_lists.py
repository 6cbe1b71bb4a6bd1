"""Lists from messages that were already written."""

from __future__ import annotations

import pytest

from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.protobuf.codec import ListPieces, decode, encode, encode_raw
from pilothouse.machinery.protobuf.wire import ProtobufError

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
LIST = GroupVersionKind("", "v1", "ConfigMapList")
LIST_META = {"resourceVersion": "5", "continue": "c", "remainingItemCount": 0}
ITEMS: list[Json] = [{"metadata": {"name": name}} for name in ("a", "b" * 200)]


def pieces_of(gvk: GroupVersionKind, metadata: Json, messages: list[bytes]) -> list[bytes]:
    pieces = ListPieces(gvk, metadata)
    items = [piece for message in messages for piece in pieces.item(message)]
    return [pieces.head(map(len, messages)), *items, pieces.tail()]


@pytest.mark.parametrize(
    "gvk",
    [
        LIST,
        GroupVersionKind("meta.k8s.io", "v1", "PartialObjectMetadataList"),
        GroupVersionKind("meta.k8s.io", "v1beta1", "PartialObjectMetadataList"),
    ],
)
def test_a_list_of_messages_is_the_list_of_their_objects(gvk: GroupVersionKind) -> None:
    whole = {"kind": gvk.kind, "apiVersion": gvk.api_version, "metadata": LIST_META, "items": ITEMS}
    messages = [encode_raw(item, CONFIG_MAP) for item in ITEMS]
    assert b"".join(pieces_of(gvk, LIST_META, messages)) == encode(whole)
    assert decode(encode(whole)) == whole


def test_an_empty_list_still_has_its_metadata() -> None:
    assert b"".join(pieces_of(LIST, {}, [])).hex(" ").endswith("12 08 0a 06 0a 00 12 00 1a 00 1a 00 22 00")


def test_items_are_not_copied_into_the_pieces() -> None:
    message = encode_raw(ITEMS[1], CONFIG_MAP)
    assert any(piece is message for piece in pieces_of(LIST, {}, [message]))


def test_a_kind_that_is_no_list_is_refused() -> None:
    with pytest.raises(ProtobufError, match="ConfigMap is no list"):
        ListPieces(CONFIG_MAP, {})
