"""The rules that ConfigMaps and Secrets share, for their keys, sizes and immutability."""

from __future__ import annotations

from pilothouse.machinery.field import Errors, forbidden, invalid, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_config_map_key

MAX_SIZE = 1024 * 1024


def validate_keys(obj: Json, field: str) -> Errors:
    for key in sorted(obj.get(field) or {}):
        for problem in is_config_map_key(key):
            yield invalid(root(field).key(key), key, problem)


def forbid_change(obj: Json, old: Json, *fields: str) -> Errors:
    """The rule of `immutable: true`, for fields of an object that has it."""
    for field in fields:
        if obj.get(field) != old.get(field):
            yield forbidden(root(field), "field is immutable when `immutable` is set")


def byte_length(base64_text: str) -> int:
    """Return the number of bytes that a base64 text stands for."""
    return len(base64_text) * 3 // 4 - base64_text[-2:].count("=")
