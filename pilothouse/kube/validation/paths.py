"""Paths of files that end up inside containers or on nodes."""

from __future__ import annotations

from pilothouse.machinery.field import Errors, Path, invalid


def no_backsteps(value: str, path: Path) -> Errors:
    if ".." in value and ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def local_descending_path(value: str, path: Path) -> Errors:
    """Relative, and never leading upwards."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    yield from no_backsteps(value, path)


def local_non_reserved_path(value: str, path: Path) -> Errors:
    """Check as `local_descending_path` does, and refuse names with two leading dots, which the kubelet uses itself."""
    yield from local_descending_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")
