"""API versions in order of preference: v10, v2, v1, v11beta2, v3beta1, v12alpha1, foo1, foo10."""

from __future__ import annotations

import re
from typing import TypeAlias

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
