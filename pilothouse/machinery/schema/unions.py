"""The unions in a CustomResourceDefinition's schema: a schema or a boolean, one or many schemas, a schema or names.

Go decodes what is inside them apart from the rest, so fields unknown there are dropped without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pilothouse.machinery.schema.nodes import Scalar, TypeNode
from pilothouse.machinery.schema.scalars import boolean, string

Decode: TypeAlias = Callable[[Any], Any]


def union_decoder(node: TypeNode, decoder_of: Callable[[TypeNode], Decode]) -> Decode:
    assert node.element is not None
    schema = node.element

    def decode(value: Any) -> Any:
        if type(value) is dict:
            return decoder_of(schema)(value)
        if node.scalar is Scalar.SCHEMA_OR_BOOL:
            return boolean(value)
        if type(value) is not list or not value:
            return None
        one = string if node.scalar is Scalar.SCHEMA_OR_STRINGS else decoder_of(schema)
        return [
            ("" if node.scalar is Scalar.SCHEMA_OR_STRINGS else {}) if item is None else one(item) for item in value
        ]

    return decode
