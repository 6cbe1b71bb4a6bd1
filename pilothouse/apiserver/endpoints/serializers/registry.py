"""The media types that a server speaks, in order of preference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.json import JsonSerializer
from pilothouse.apiserver.endpoints.serializers.protobuf import ProtobufSerializer
from pilothouse.apiserver.endpoints.serializers.unstructured_protobuf import UnstructuredProtobufSerializer
from pilothouse.apiserver.endpoints.serializers.yaml import YamlSerializer

Serializers: TypeAlias = tuple[Serializer, ...]

JSON = JsonSerializer()
YAML = YamlSerializer()
PROTOBUF = ProtobufSerializer()

BUILT_IN: Serializers = (JSON, YAML, PROTOBUF)
"""For kinds that have a protobuf message."""

TEXT: Serializers = (JSON, YAML)
"""For kinds that have none, of servers that say so: who also takes JSON gets it."""

UNSTRUCTURED: Serializers = (JSON, YAML, UnstructuredProtobufSerializer())
"""For custom resources."""


def media_types(serializers: Sequence[Serializer]) -> list[str]:
    return [serializer.media_type for serializer in serializers]


def stream_media_types(serializers: Sequence[Serializer]) -> list[str]:
    return [f"{s.media_type};stream=watch" for s in serializers if s.stream_media_type]
