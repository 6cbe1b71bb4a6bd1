"""The one error of this package."""

from __future__ import annotations


class ProtobufError(Exception):
    """Bytes that are no protobuf of the expected kind, or an object that cannot be written as one."""
