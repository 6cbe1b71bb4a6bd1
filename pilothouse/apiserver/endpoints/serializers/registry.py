"""The supported media types, in order of preference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pilothouse.apiserver.endpoints.serializers.cbor import CborSerializer
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.json import JsonSerializer, YamlSerializer
from pilothouse.apiserver.endpoints.serializers.protobuf import ProtobufSerializer, UnstructuredProtobufSerializer

Serializers: TypeAlias = tuple[Serializer, ...]

JSON = JsonSerializer()
YAML = YamlSerializer()
PROTOBUF = ProtobufSerializer()
CBOR = CborSerializer()

BUILT_IN: Serializers = (JSON, YAML, PROTOBUF)
"""For kinds with a protobuf message."""

TEXT: Serializers = (JSON, YAML)
"""For kinds without a protobuf message, on servers that announce this: clients that also accept JSON get JSON."""

UNSTRUCTURED: Serializers = (JSON, YAML, UnstructuredProtobufSerializer())
"""For custom resources."""


def with_cbor(serializers: Serializers) -> Serializers:
    """Return the serializers and CBOR, which is always last."""
    return serializers if CBOR in serializers else (*serializers, CBOR)


def media_types(serializers: Sequence[Serializer]) -> list[str]:
    return [serializer.media_type for serializer in serializers]


def stream_media_types(serializers: Sequence[Serializer]) -> list[str]:
    """Return the media types that clients may request. The content type of a response may differ."""
    return [
        (serializer.stream_media_type if serializer is CBOR else f"{serializer.media_type};stream=watch")
        for serializer in serializers
        if serializer.stream_media_type
    ]
