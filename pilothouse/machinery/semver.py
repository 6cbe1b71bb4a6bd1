"""Semantic versions (semver.org, 2.0.0): parsing and ordering. Build metadata is ignored."""

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
    """Return major, minor, patch and pre-release (empty for a release) as written; None for an invalid version."""
    match = _VERSION.fullmatch(version)
    return None if match is None else (match[1], match[2], match[3], match[4] or "")


def ordinal(major: str, minor: str, patch: str, preview: str) -> tuple[Any, ...]:
    """Sort key: pre-releases before the release, numbers before words, fewer parts before more."""
    parts = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in (preview.split(".") if preview else [])
    )
    return (int(major), int(minor), int(patch), not preview, parts)
