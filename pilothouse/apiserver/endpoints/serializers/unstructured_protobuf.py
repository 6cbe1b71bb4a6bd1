"""application/vnd.kubernetes.protobuf at endpoints of custom resources, which have no messages: their metadata alone
travels in it, and Status answers do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pilothouse.apiserver.endpoints.serializers.interface import ListFrame, ListWriter, View
from pilothouse.apiserver.endpoints.serializers.protobuf import ProtobufSerializer
from pilothouse.apiserver.endpoints.serializers.protobuf_lists import ProtobufListWriter
from pilothouse.apiserver.storage.object import StoredObject
from pilothouse.machinery.errors import NotAcceptable
from pilothouse.machinery.objects import Json

_META = ("v1", "meta.k8s.io/v1", "meta.k8s.io/v1beta1")


class UnstructuredProtobufSerializer(ProtobufSerializer):
    """Refuses when it is to write an object, as late as upstream does."""

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        if obj.get("apiVersion") not in _META:
            raise not_marshalable("Unstructured")
        return super().encode(obj, pretty=pretty)

    def piece(self, stored: StoredObject, view: View) -> bytes:
        return b""

    def wrap(self, piece: bytes, view: View, *, pretty: bool = False) -> bytes:
        raise not_marshalable("Unstructured")

    def lists(self, *, pretty: bool = False) -> ListWriter:
        return _LISTS


class UnstructuredProtobufListWriter(ProtobufListWriter):
    def bytes_to_encode(self, objects: Sequence[StoredObject], view: View) -> int:
        return 0

    def piece(self, stored: StoredObject, view: View) -> bytes:
        raise not_marshalable("UnstructuredList")

    def head(self, frame: ListFrame, sizes: Iterable[int]) -> bytes:
        if frame.fields["apiVersion"] not in _META:
            raise not_marshalable("UnstructuredList")
        return super().head(frame, sizes)


def not_marshalable(kind: str) -> NotAcceptable:
    return NotAcceptable(
        f"object *unstructured.{kind} does not implement the protobuf marshalling interface and cannot be encoded to "
        "a protobuf message"
    )


_LISTS = UnstructuredProtobufListWriter()
