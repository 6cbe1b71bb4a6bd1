"""Flags that select and configure admission plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import missing_files
from pilothouse.kube.admission.config import DEFAULT_TOLERATION_SECONDS
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import INT, STRING, STRINGS, flag


def _names(*, default_on: bool) -> frozenset[str]:
    """Return the plugins that run by default, or the other plugins."""
    from pilothouse.kube.admission.plugins import (
        existing_plugins,
    )  # imports every plugin

    return frozenset(row.name for row in existing_plugins() if row.default_on is default_on)


def _list(*, default_on: bool) -> str:
    return ", ".join(sorted(_names(default_on=default_on)))


@dataclass(frozen=True)
class AdmissionOptions:
    title: ClassVar[str] = "admission"

    enable: tuple[str, ...] = flag(
        "enable-admission-plugins",
        STRINGS,
        (),
        "Admission plugins to enable besides the default plugins.",
        details=lambda: f"Plugins that are off by default: {_list(default_on=False)}.",
    )
    disable: tuple[str, ...] = flag(
        "disable-admission-plugins",
        STRINGS,
        (),
        "Default admission plugins to disable.",
        details=lambda: f"Plugins that are on by default: {_list(default_on=True)}.",
    )

    config_file: str = flag(
        "admission-control-config-file", STRING, "", "File with the AdmissionConfiguration of plugins."
    )
    not_ready_toleration_seconds: int = flag(
        "default-not-ready-toleration-seconds",
        INT,
        DEFAULT_TOLERATION_SECONDS,
        "Seconds that pods without a toleration of their own stay on a node that is not ready.",
    )
    unreachable_toleration_seconds: int = flag(
        "default-unreachable-toleration-seconds",
        INT,
        DEFAULT_TOLERATION_SECONDS,
        "Seconds that pods without a toleration of their own stay on an unreachable node.",
    )

    @property
    def enabled(self) -> frozenset[str]:
        return (_names(default_on=True) | frozenset(self.enable)) - frozenset(self.disable)

    def validate(self) -> Iterator[str]:
        yield from missing_files({"admission-control-config-file": self.config_file})
        if not self.enable and not self.disable:
            return
        known = _names(default_on=True) | _names(default_on=False)
        for name in self.enable:
            if name not in known:
                yield f'enable-admission-plugins plugin "{name}" is unknown'
        for name in self.disable:
            if name not in known:
                yield f'disable-admission-plugins plugin "{name}" is unknown'
        for name in sorted(set(self.enable) & set(self.disable)):
            yield f'"{name}" in enable-admission-plugins and disable-admission-plugins overlapped'
