"""Semantic versions (semver.org, 2.0.0): how one is written, and which comes first. Build metadata does not count."""

from __future__ import annotations

import re
from typing import Any

_IDENTIFIER = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION = re.compile(
    rf"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def parts_of(version: str) -> tuple[str, str, str, str] | None:
    """Return major, minor, patch and pre-release (empty for a release) as written; None for what is no version."""
    found = _VERSION.fullmatch(version)
    return None if found is None else (found[1], found[2], found[3], found[4] or "")


def ordinal(major: str, minor: str, patch: str, preview: str) -> tuple[Any, ...]:
    """A release comes after its previews, numbers before words, and fewer parts before more."""
    parts = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in (preview.split(".") if preview else [])
    )
    return (int(major), int(minor), int(patch), not preview, parts)
