"""Versions: Kubernetes API versions in order of preference, and semantic versions (semver.org 2.0.0).

API versions sort like v10, v2, v1, v11beta2, v3beta1, v12alpha1, foo1, foo10. Build metadata of semantic versions is
ignored.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?", re.ASCII)
_STABILITY = {None: 0, "beta": 1, "alpha": 2}

PreferenceKey: TypeAlias = tuple[int, int, int, str]


def preference(version: str) -> PreferenceKey:
    """Sort key of a version: most stable first, then newest; other names last, alphabetically."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (len(_STABILITY), 0, 0, version)
    major, stability, minor = match.groups()
    return (_STABILITY[stability], -int(major), -int(minor or 0), "")


def is_version(text: str) -> bool:
    """Report whether the text is a Kubernetes version: v1, v1beta1, v2alpha3."""
    return _VERSION.fullmatch(text) is not None


_IDENTIFIER = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_SEMANTIC_VERSION = re.compile(
    rf"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)


def parts_of(version: str) -> tuple[str, str, str, str] | None:
    """Return major, minor, patch and pre-release (empty for a release) as written; None for an invalid version."""
    match = _SEMANTIC_VERSION.fullmatch(version)
    return None if match is None else (match[1], match[2], match[3], match[4] or "")


def ordinal(major: str, minor: str, patch: str, preview: str) -> tuple[Any, ...]:
    """Sort key: pre-releases before the release, numbers before words, fewer parts before more."""
    parts = tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in (preview.split(".") if preview else [])
    )
    return (int(major), int(minor), int(patch), not preview, parts)
