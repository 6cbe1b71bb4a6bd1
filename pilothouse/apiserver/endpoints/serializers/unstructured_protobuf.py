"""application/vnd.kubernetes.protobuf at endpoints of custom resources, which have no messages: their metadata alone
travels in it, and Status answers do."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.serializers.protobuf import ProtobufSerializer
from pilothouse.machinery.errors import NotAcceptable
from pilothouse.machinery.objects import Json

_META = ("v1", "meta.k8s.io/v1", "meta.k8s.io/v1beta1")


class UnstructuredProtobufSerializer(ProtobufSerializer):
    only_views = True

    def encode(self, obj: Json, *, pretty: bool = False) -> bytes:
        """Raises NotAcceptable for an object: a watch can have begun before it shows that its events have no view."""
        if obj.get("apiVersion") not in _META:
            raise not_marshalable("Unstructured")
        return super().encode(obj, pretty=pretty)


def not_marshalable(kind: str) -> NotAcceptable:
    return NotAcceptable(
        f"object *unstructured.{kind} does not implement the protobuf marshalling interface and cannot be encoded to "
        "a protobuf message"
    )
