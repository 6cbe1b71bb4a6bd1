"""The enabled API versions and resources: defaults and --runtime-config.

The more specific rule wins: group/version/resource over group/version over api/ga, api/beta, api/alpha over api/all.
Stable versions are enabled by default; beta and alpha versions are disabled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersion, GroupVersionResource

_MATURITIES = {
    "api/alpha": re.compile(r"v\d+alpha\d+"),
    "api/beta": re.compile(r"v\d+beta\d+"),
    "api/ga": re.compile(r"v\d+"),
    "api/all": re.compile(r".*"),
}
"""Most specific first."""


@dataclass(frozen=True, slots=True)
class ResourceConfig:
    maturities: dict[str, bool] = field(default_factory=dict)
    versions: dict[GroupVersion, bool] = field(default_factory=dict)
    resources: dict[GroupVersionResource, bool] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """The invalid parts of the text."""

    @property
    def named_versions(self) -> list[GroupVersion]:
        """The group versions that are named, alone or with a resource, in order."""
        return sorted({*self.versions, *(each.group_version for each in self.resources)}, key=str)

    def version_enabled(self, version: GroupVersion) -> bool:
        if version in self.versions:
            return self.versions[version]
        for name, pattern in _MATURITIES.items():
            if name in self.maturities and pattern.fullmatch(version.version):
                return self.maturities[name]
        return _MATURITIES["api/ga"].fullmatch(version.version) is not None

    def resource_enabled(self, resource: GroupVersionResource) -> bool:
        explicit = self.resources.get(resource)
        return self.version_enabled(resource.group_version) if explicit is None else explicit

    def any_resource_enabled(self, version: GroupVersion) -> bool:
        """Return whether the version must be installed."""
        resources = (on for resource, on in self.resources.items() if resource.group_version == version)
        return self.version_enabled(version) or any(resources)


def parse_runtime_config(settings: Mapping[str, str]) -> ResourceConfig:
    """Parse --runtime-config. Collect all problems."""
    problems: list[str] = []
    config = ResourceConfig()
    for key, text in settings.items():
        value = _value(text)
        if key in _MATURITIES:
            if text not in ("true", "false"):
                problems.append(f"invalid value {key}={text}")
            config.maturities[key] = text == "true"
        elif value is None:
            reason = f"strconv.ParseBool: parsing {quote(text)}: invalid syntax"
            problems.append(f"invalid value of {key}: {text}, err: {reason}")
        elif key != "api/legacy":
            problems.extend(_explicit(config, key, value))
    return ResourceConfig(config.maturities, config.versions, config.resources, tuple(problems))


def _explicit(config: ResourceConfig, key: str, value: bool) -> list[str]:
    # `v1` and `api/v1` are old names of the core group's `/v1`.
    parts = re.sub(r"^(?:api/)?v1(?=/|$)", "/v1", key).split("/")
    if len(parts) == 2:
        config.versions[GroupVersion(parts[0], parts[1])] = value
    elif len(parts) == 3 and parts[2] != parts[2].lower():
        reason = f'group/version/resource and resource is always lowercase plural, not "{parts[2]}"'
        return [f"invalid key {key}: {reason}"]
    elif len(parts) == 3:
        config.resources[GroupVersionResource(parts[0], parts[1], parts[2])] = value
    else:
        return [f"runtime-config invalid key {key}"]
    return []


def _value(text: str) -> bool | None:
    if text in ("", "1", "t", "T", "TRUE", "true", "True"):
        return True
    return False if text in ("0", "f", "F", "FALSE", "false", "False") else None
