"""The help of `pilothouse serve`, section by section."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.controlplane.options.options import SECTIONS
from pilothouse.controlplane.options.upstream_flags import WITHOUT_EFFECT, WITHOUT_EFFECT_TITLE
from pilothouse.machinery.flags.flagset import format_section, help_sections


def usage_sections(columns: int = 0) -> Iterator[str]:
    """Yield our own flags by task, then kube-controller-manager's and kube-apiserver's in their groups."""
    for title, flags in help_sections(SECTIONS.values()):
        yield format_section(title, flags, columns)
    yield format_section(WITHOUT_EFFECT_TITLE, WITHOUT_EFFECT, columns)
