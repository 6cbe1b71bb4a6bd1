"""Validation of names, requested in the spec and accepted in the status."""

from __future__ import annotations

from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1035_label, is_kind_name

_REQUIRED = ("plural", "singular", "kind", "listKind")


def validate_required_names(names: Json, path: Path) -> Errors:
    """Require all names; the spec needs them, and the status lacks names that are not accepted yet."""
    for field in _REQUIRED:
        if not names.get(field):
            yield required(path.child(field))


def validate_names(names: Json, path: Path) -> Errors:
    for field in ("plural", "singular"):
        yield from _validate_label(names.get(field) or "", path.child(field))
    for field in ("kind", "listKind"):
        yield from _validate_kind(names.get(field) or "", path.child(field))
    for position, name in enumerate(names.get("shortNames") or ()):
        yield from _validate_each(name, path.child("shortNames").index(position))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(path.child("listKind"), names["listKind"], "kind and listKind may not be the same")
    for position, name in enumerate(names.get("categories") or ()):
        yield from _validate_each(name, path.child("categories").index(position))


def _validate_label(name: str, path: Path) -> Errors:
    if name:
        yield from _validate_each(name, path)


def _validate_each(name: str, path: Path) -> Errors:
    if problems := is_dns1035_label(name):
        yield invalid(path, name, ",".join(problems))


def _validate_kind(name: str, path: Path) -> Errors:
    if name:
        yield from (invalid(path, name, problem) for problem in is_kind_name(name))
