"""Versions of APIs in order of preference: v10, v2, v1, v11beta2, v3beta1, v12alpha1, foo1, foo10."""

from __future__ import annotations

import re
from typing import TypeAlias

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?", re.ASCII)
_STABILITY = {None: 0, "beta": 1, "alpha": 2}

PreferenceKey: TypeAlias = tuple[int, int, int, str]


def preference(version: str) -> PreferenceKey:
    """A key to sort by: the most stable first, then the newest; other names come last, by the alphabet."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (len(_STABILITY), 0, 0, version)
    major, stability, minor = found.groups()
    return (_STABILITY[stability], -int(major), -int(minor or 0), "")


def is_version(text: str) -> bool:
    """Return whether it is a version as Kubernetes writes them: v1, v1beta1, v2alpha3."""
    return _VERSION.fullmatch(text) is not None
