"""The rules that storage classes and volume attributes classes share, for their driver and its parameters."""

from __future__ import annotations

from pilothouse.kube.validation.fields import qualified_name
from pilothouse.machinery.field import Errors, Path, invalid, required, too_long

_MAX_PARAMETERS = 512
_MAX_SIZE = 256 * 1024


def validate_driver(name: str, path: Path) -> Errors:
    if not name:
        yield required(path)
    else:
        yield from qualified_name(name.lower(), path)


def validate_parameters(parameters: dict[str, str], path: Path, *, may_be_empty: bool) -> Errors:
    if len(parameters) > _MAX_PARAMETERS:
        yield too_long(path, _MAX_PARAMETERS)
        return
    if "" in parameters:
        yield invalid(path, "", "field can not be empty.")
    if size_of(parameters) > _MAX_SIZE:
        yield too_long(path, _MAX_SIZE)
    if not parameters and not may_be_empty:
        yield required(path, "must contain at least one key/value pair")


def size_of(texts: dict[str, str]) -> int:
    return sum(len(name.encode()) + len(value.encode()) for name, value in texts.items())
