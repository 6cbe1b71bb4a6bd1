"""Options of served APIs: API versions, feature gates, and the emulated Kubernetes version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.server.resource_config import parse_runtime_config
from pilothouse.machinery import release
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, BOOL_MAP, CONFIGURATION_MAP, STRINGS, flag
from pilothouse.machinery.gofmt import quote

_VERSIONS_OF_UPSTREAM = """
    admission.k8s.io v1 v1beta1
    admissionregistration.k8s.io v1 v1beta1 v1alpha1
    apiextensions.k8s.io v1 v1beta1
    apiregistration.k8s.io v1 v1beta1
    apps v1 v1beta2 v1beta1
    authentication.k8s.io v1 v1beta1 v1alpha1
    authorization.k8s.io v1 v1beta1
    autoscaling v2 v1
    batch v1 v1beta1
    certificates.k8s.io v1 v1beta1 v1alpha1
    coordination.k8s.io v1 v1beta1 v1alpha2
    discovery.k8s.io v1 v1beta1
    events.k8s.io v1 v1beta1
    extensions v1beta1
    flowcontrol.apiserver.k8s.io v1 v1beta3 v1beta2 v1beta1
    imagepolicy.k8s.io v1alpha1
    internal.apiserver.k8s.io v1alpha1
    networking.k8s.io v1 v1beta1
    node.k8s.io v1 v1beta1
    policy v1 v1beta1
    rbac.authorization.k8s.io v1 v1beta1 v1alpha1
    resource.k8s.io v1 v1beta2 v1beta1 v1alpha3
    scheduling.k8s.io v1 v1beta1 v1alpha2
    storage.k8s.io v1 v1beta1 v1alpha1
    storagemigration.k8s.io v1beta1
"""

_ROWS = [line.split() for line in _VERSIONS_OF_UPSTREAM.strip().splitlines()]

_IN_RELEASE = {
    "1.34": "autoscaling v2 v1 v2beta1 v2beta2; scheduling.k8s.io v1 v1beta1 v1alpha1;storagemigration.k8s.io v1alpha1",
    "1.35": "autoscaling v2 v1 v2beta1 v2beta2; scheduling.k8s.io v1 v1beta1 v1alpha1",
    "1.37": "lifecycle.k8s.io v1alpha1; scheduling.k8s.io v1 v1beta1 v1alpha3; storagemigration.k8s.io v1 v1beta1",
}
"""Groups that differ in other releases than 1.36."""


def registered() -> dict[str, frozenset[str]]:
    """Return group -> versions that kube-apiserver of this release registers. Unstable versions are off by default."""
    own = [row.split() for row in _IN_RELEASE.get(release.current().name, "").split(";") if row]
    return {"": frozenset({"v1"})} | {group: frozenset(versions) for group, *versions in (*_ROWS, *own)}


_HELP = """Turns built-in APIs on or off with key=true|false:
v1, group/version or group/version/resource for one of them (apps/v1=false)
api/ga, api/beta, api/alpha for all versions of that maturity
api/all for all versions"""


@dataclass(frozen=True)
class APIEnablementOptions:
    title: ClassVar[str] = "API enablement"

    runtime_config: dict[str, str] = flag("runtime-config", CONFIGURATION_MAP, {}, _HELP)

    def validate(self) -> Iterator[str]:
        if self.runtime_config == {"api/all": "false"}:
            yield "invalid runtime-config with only api/all=false"
        config = parse_runtime_config(self.runtime_config)
        yield from config.problems
        known = registered() if config.named_versions else {}
        if unknown := [str(version) for version in config.named_versions if version.group not in known]:
            yield f"unknown api groups {','.join(unknown)}"
        for version in config.named_versions:
            if version.version not in known.get(version.group, (version.version,)):
                yield f"group version {version} that has not been registered"


@dataclass(frozen=True)
class FeatureOptions:
    title: ClassVar[str] = "features"

    feature_gates: dict[str, bool] = flag(
        "feature-gates", BOOL_MAP, {}, "Gates as Name=true|false. One that this server can not follow is refused."
    )

    def gates(self, compatibility: CompatibilityOptions) -> FeatureGates:
        """Return the feature gates, without the optional `kube:` prefix. No other component has gates."""
        changed = {name.removeprefix("kube:"): value for name, value in self.feature_gates.items()}
        return FeatureGates(changed, compatibility.emulated, compatibility.min_compatibility)

    def validate(self) -> Iterator[str]:
        yield from ()  # CompatibilityOptions must be valid first: see Options.problems


_COMPONENT = "kube"
MIN_COMPATIBILITY_VERSION = "min-compatibility-version"
_VERSION = re.compile(r"\s*v?(?P<major>[0-9]+)\.(?P<minor>[0-9]+)(?:\.0)*(?P<patch>(?:\.[0-9]+)*)[0-9A-Za-z.+-]*\s*")

_FIRST_EMULATED = 31
"""First minor version that upstream can emulate."""
_SKEW = 3
"""Number of older minor versions that a binary can emulate."""
_SAME_VERSION = "cannot be set to true if the emulation version is the same as the binary version"


@dataclass(frozen=True)
class CompatibilityOptions:
    title: ClassVar[str] = "compatibility"

    emulated_version: tuple[str, ...] = flag(
        "emulated-version",
        STRINGS,
        (),
        "Kubernetes version whose APIs and features to serve: that of the server, or one of the three before it.",
    )
    min_compatibility_version: tuple[str, ...] = flag(
        MIN_COMPATIBILITY_VERSION,
        STRINGS,
        (),
        "Oldest version of the other control plane components; default: one before the emulated version.",
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

    @property
    def emulated(self) -> int:
        """Emulated minor version of valid options."""
        return _minor(self.emulated_version) or release.current().minor

    @property
    def min_compatibility(self) -> int:
        """Minor version of the oldest compatible component, of valid options."""
        return _minor(self.min_compatibility_version) or max(self.emulated - 1, _oldest())

    def validate(self) -> Iterator[str]:
        problems = [*_problems(self.emulated_version), *_problems(self.min_compatibility_version)]
        if problems:
            yield problems[0]
            return
        own, oldest = release.current(), _oldest()
        if not oldest <= self.emulated <= own.minor:
            yield f"emulation version 1.{self.emulated} is not between [1.{oldest}, {own.name}.0]"
        if not oldest <= self.min_compatibility <= self.emulated:
            allowed = f"[1.{oldest}, 1.{self.emulated}]"
            yield f"minCompatibilityVersion version 1.{self.min_compatibility} is not between {allowed}"
        is_own = self.emulated == own.minor
        for name, value in (
            ("EmulationForwardCompatible", self.emulation_forward_compatible),
            ("RuntimeConfigEmulationForwardCompatible", self.runtime_config_emulation_forward_compatible),
        ):
            if value:
                yield f"ServerRunOptions.{name} {_SAME_VERSION if is_own else 'is not supported by this version'}"


def _oldest() -> int:
    """Return the oldest minor version that this release can emulate."""
    return max(release.current().minor - _SKEW, _FIRST_EMULATED)


def _minor(values: tuple[str, ...]) -> int:
    """Return the minor version that the values give this component, or 0."""
    return max((int(match["minor"]) for _, match in map(_component, values) if match is not None), default=0)


def _component(value: str) -> tuple[str, re.Match[str] | None]:
    """Return the component and the version of `[component=]version`."""
    component, equals, version = (text.strip() for text in value.partition("="))
    return (component, _VERSION.fullmatch(version)) if equals else (_COMPONENT, _VERSION.fullmatch(value))


def _problems(values: tuple[str, ...]) -> Iterator[str]:
    """Yield the problems of a list of versions, in the order in which upstream finds them."""
    seen: dict[str, str] = {}
    for value in values:
        component, match = _component(value)
        if match is None:
            yield f"could not parse {quote(value.partition('=')[2].strip() if '=' in value else value)} as version"
            return
        version = f"{match['major']}.{match['minor']}"
        if match["patch"]:
            yield f"patch version not allowed, got: {component}={version}{match['patch']}"
            return
        if component in seen:
            yield f"duplicate version flag, {component}={seen[component]} and {component}={version}"
            return
        seen[component] = version
    for component in seen:
        if component != _COMPONENT:
            yield f"component not registered: {component}"
