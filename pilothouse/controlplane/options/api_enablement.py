"""API enablement: which built-in API versions are served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.apiserver.server.resource_config import parse_runtime_config
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import CONFIGURATION_MAP, flag

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
"""The versions of each group that kube-apiserver v1.36 knows by name. Those that are not stable are off by default."""

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
        if unknown := [str(each) for each in config.named_versions if each.group not in REGISTERED]:
            yield f"unknown api groups {','.join(unknown)}"
        for version in config.named_versions:
            if version.version not in REGISTERED.get(version.group, (version.version,)):
                yield f"group version {version} that has not been registered"
