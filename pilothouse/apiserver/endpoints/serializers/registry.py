"""The media types that a server speaks, in order of preference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pilothouse.apiserver.endpoints.serializers.cbor import CborSerializer
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.json import JsonSerializer
from pilothouse.apiserver.endpoints.serializers.protobuf import ProtobufSerializer, UnstructuredProtobufSerializer
from pilothouse.apiserver.endpoints.serializers.yaml import YamlSerializer

Serializers: TypeAlias = tuple[Serializer, ...]

JSON = JsonSerializer()
YAML = YamlSerializer()
PROTOBUF = ProtobufSerializer()
CBOR = CborSerializer()

BUILT_IN: Serializers = (JSON, YAML, PROTOBUF)
"""For kinds that have a protobuf message."""

TEXT: Serializers = (JSON, YAML)
"""For kinds that have none, of servers that say so: who also takes JSON gets it."""

UNSTRUCTURED: Serializers = (JSON, YAML, UnstructuredProtobufSerializer())
"""For custom resources."""


def with_cbor(serializers: Serializers) -> Serializers:
    """Return these and CBOR, which is last everywhere."""
    return serializers if CBOR in serializers else (*serializers, CBOR)


def media_types(serializers: Sequence[Serializer]) -> list[str]:
    return [serializer.media_type for serializer in serializers]


def stream_media_types(serializers: Sequence[Serializer]) -> list[str]:
    """Those that clients may ask for; the content type of an answer can be another."""
    return [
        (serializer.stream_media_type if serializer is CBOR else f"{serializer.media_type};stream=watch")
        for serializer in serializers
        if serializer.stream_media_type
    ]
