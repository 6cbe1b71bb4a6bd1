"""The warnings that a server puts beside its answers, each shown once."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

logger = logging.getLogger(__name__)

WarningHandler: TypeAlias = Callable[[str], None]

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def warnings_in(headers: Mapping[str, str]) -> list[str]:
    """The texts of the 299 warnings in a response's headers."""
    return [re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(headers.get("warning", ""))]


def log_each_once() -> WarningHandler:
    seen: set[str] = set()

    def handle(text: str) -> None:
        if text not in seen:
            seen.add(text)
            logger.warning("Warning: %s", text)

    return handle
