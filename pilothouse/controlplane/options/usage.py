"""The help of `pilothouse serve`, section by section."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.controlplane.options.options import SECTIONS
from pilothouse.controlplane.options.upstream_flags import WITHOUT_EFFECT, WITHOUT_EFFECT_TITLE
from pilothouse.machinery.flags.declare import flags_of
from pilothouse.machinery.flags.usage import format_section


def usage_sections(columns: int = 0) -> Iterator[str]:
    for section in SECTIONS.values():
        yield format_section(section.title, flags_of(section), columns)
    yield format_section(WITHOUT_EFFECT_TITLE, WITHOUT_EFFECT, columns)
