"""Options of served APIs: API versions, feature gates, and the emulated Kubernetes version (only the server's own)."""

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

REGISTERED: dict[str, frozenset[str]] = {"": frozenset({"v1"})} | {
    group: frozenset(versions) for group, *versions in _ROWS
}
"""group -> versions that kube-apiserver v1.36 registers. Unstable versions are disabled by default."""

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
        if unknown := [str(version) for version in config.named_versions if version.group not in REGISTERED]:
            yield f"unknown api groups {','.join(unknown)}"
        for version in config.named_versions:
            if version.version not in REGISTERED.get(version.group, (version.version,)):
                yield f"group version {version} that has not been registered"


@dataclass(frozen=True)
class FeatureOptions:
    title: ClassVar[str] = "features"

    feature_gates: dict[str, bool] = flag(
        "feature-gates", BOOL_MAP, {}, "Gates as Name=true|false. One that this server can not follow is refused."
    )

    @property
    def gates(self) -> FeatureGates:
        """Feature gates without the optional `kube:` prefix. No other component has gates."""
        return FeatureGates({name.removeprefix("kube:"): value for name, value in self.feature_gates.items()})

    def validate(self) -> Iterator[str]:
        yield from self.gates.problems()


_COMPONENT = "kube"
_VERSION = re.compile(r"\s*v?(?P<minor>[0-9]+\.[0-9]+)(?:\.0)*(?P<patch>(?:\.[0-9]+)*)[0-9A-Za-z.+-]*\s*")

_SAME_VERSION = "cannot be set to true if the emulation version is the same as the binary version"


@dataclass(frozen=True)
class CompatibilityOptions:
    title: ClassVar[str] = "compatibility"

    emulated_version: list[str] = flag(
        "emulated-version", STRINGS, [], "The Kubernetes version to emulate: that of the server."
    )
    min_compatibility_version: list[str] = flag(
        "min-compatibility-version",
        STRINGS,
        [],
        "The oldest version that other servers may have: one minor version before that of the server.",
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
        own = release.current()
        oldest, before = f"{own.major}.{own.minor - 3}", f"{own.major}.{own.minor - 1}"
        yield from _problems(
            self.emulated_version,
            fits=own.name,
            name="emulated-version",
            oldest=oldest,
            out_of_range=f"emulation version {{}} is not between [{oldest}, {own.name}.0]",
        )
        yield from _problems(
            self.min_compatibility_version,
            fits=before,
            name="min-compatibility-version",
            oldest=oldest,
            out_of_range=f"minCompatibilityVersion version {{}} is not between [{oldest}, {own.name}]",
        )
        if self.emulation_forward_compatible:
            yield f"ServerRunOptions.EmulationForwardCompatible {_SAME_VERSION}"
        if self.runtime_config_emulation_forward_compatible:
            yield f"ServerRunOptions.RuntimeConfigEmulationForwardCompatible {_SAME_VERSION}"


def _problems(values: list[str], *, fits: str, oldest: str, name: str, out_of_range: str) -> Iterator[str]:
    seen: dict[str, str] = {}
    for value in values:
        component, equals, version = (text.strip() for text in value.partition("="))
        if not equals:
            component, version = _COMPONENT, value
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
        elif not (_number(oldest) <= _number(match["minor"]) <= _number(release.current().name)):
            yield out_of_range.format(version)
        elif match["minor"] != fits:
            yield f"--{name}={version} is not supported by this version, which is always {fits}"
        seen[component] = version


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
