"""Compatibility: which version of Kubernetes the server behaves as. That can only be its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import BOOL, STRINGS, flag
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.release import MAJOR, MINOR

_COMPONENT = "kube"
_VERSION = re.compile(r"\s*v?(?P<minor>[0-9]+\.[0-9]+)(?:\.0)*(?P<patch>(?:\.[0-9]+)*)[0-9A-Za-z.+-]*\s*")

_OWN = f"{MAJOR}.{MINOR}"
_BEFORE = f"{MAJOR}.{int(MINOR) - 1}"
_OLDEST = f"{MAJOR}.{int(MINOR) - 3}"
_SAME_VERSION = "cannot be set to true if the emulation version is the same as the binary version"


@dataclass(frozen=True)
class CompatibilityOptions:
    title: ClassVar[str] = "compatibility"

    emulated_version: list[str] = flag(
        "emulated-version", STRINGS, [], f"The version that APIs and features are those of: {_OWN}, or kube={_OWN}."
    )
    min_compatibility_version: list[str] = flag(
        "min-compatibility-version", STRINGS, [], f"The oldest version that other servers may have: {_BEFORE}."
    )
    emulation_forward_compatible: bool = flag(
        "emulation-forward-compatible", BOOL, False, "Can only be set where an older version is emulated."
    )
    runtime_config_emulation_forward_compatible: bool = flag(
        "runtime-config-emulation-forward-compatible",
        BOOL,
        False,
        "Can only be set where an older version is emulated.",
    )

    def validate(self) -> Iterator[str]:
        yield from _problems(
            self.emulated_version,
            fits=_OWN,
            name="emulated-version",
            out_of_range=f"emulation version {{}} is not between [{_OLDEST}, {_OWN}.0]",
        )
        yield from _problems(
            self.min_compatibility_version,
            fits=_BEFORE,
            name="min-compatibility-version",
            out_of_range=f"minCompatibilityVersion version {{}} is not between [{_OLDEST}, {_OWN}]",
        )
        if self.emulation_forward_compatible:
            yield f"ServerRunOptions.EmulationForwardCompatible {_SAME_VERSION}"
        if self.runtime_config_emulation_forward_compatible:
            yield f"ServerRunOptions.RuntimeConfigEmulationForwardCompatible {_SAME_VERSION}"


def _problems(given: list[str], *, fits: str, name: str, out_of_range: str) -> Iterator[str]:
    seen: dict[str, str] = {}
    for each in given:
        component, version = _parts(each)
        match = _VERSION.fullmatch(version)
        if match is None:
            yield f"could not parse {quote(version)} as version"
            return
        if match["patch"]:
            yield f"patch version not allowed, got: {component}={version}"
        elif component in seen:
            yield f"duplicate version flag, {component}={seen[component]} and {component}={version}"
        elif component != _COMPONENT:
            yield f"component not registered: {component}"
        elif not (_number(_OLDEST) <= _number(match["minor"]) <= _number(_OWN)):
            yield out_of_range.format(version)
        elif match["minor"] != fits:
            yield f"--{name}={version} is not supported by this version, which is always {fits}"
        seen[component] = version


def _parts(text: str) -> tuple[str, str]:
    """Return the component and its version; a version alone is that of kube."""
    component, equals, version = text.partition("=")
    return (component.strip(), version.strip()) if equals else (_COMPONENT, text)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
