"""Schemas from types: what a CustomResourceDefinition would say about the values of a Python annotation."""

from __future__ import annotations

import copy
from typing import Any

from pilothouse.builder.types.forms import form_of
from pilothouse.builder.types.hints import Names
from pilothouse.machinery.objects import Json


def schema_of(type_: Any, *, names: Names | None = None) -> Json:
    """Return the structural OpenAPI v3 schema of an annotation, with everything in its place and nothing shared.

    `names` are what names in annotations mean that only a function or a class being defined knows.
    A dict is a schema already, and returned as it is.
    Raises TypeError, with the class and the field, for a type that has no schema, such as one that contains itself.

    >>> schema_of(list[str])
    {'type': 'array', 'items': {'type': 'string'}}
    """
    return type_ if isinstance(type_, dict) else copy.deepcopy(form_of(type_, names).schema)
