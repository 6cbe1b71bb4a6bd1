"""Checks of the restricted level: pods must opt out of unneeded privileges."""

from __future__ import annotations

from pilothouse.kube.admission.podsecurity.baseline import proc_mount
from pilothouse.kube.admission.podsecurity.checks import (
    Check,
    CheckedPod,
    CheckPod,
    Violation,
    named,
    plural,
    quoted,
    seccomp_required,
    security_of,
    setters,
    unless,
)
from pilothouse.kube.admission.podsecurity.policy import Level
from pilothouse.machinery.objects import Json

_ALLOWED_VOLUMES = frozenset(
    [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ]
)
_OTHER_VOLUMES = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
]


def privilege_escalation(pod: CheckedPod) -> Violation | None:
    bad = pod.names_of(lambda security: security.get("allowPrivilegeEscalation") is not False)
    detail = f"{named('container', bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail) if bad else None


def capabilities(pod: CheckedPod) -> Violation | None:
    keeping = pod.names_of(lambda security: "ALL" not in ((security.get("capabilities") or {}).get("drop") or ()))
    adding = {container["name"]: _added(container) for container in pod.containers if _added(container)}
    details = []
    if keeping:
        details.append(f'{named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        capabilities_text = quoted(sorted(set().union(*adding.values())))
        containers = named("container", list(adding))
        details.append(f"{containers} must not include {capabilities_text} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _added(container: Json) -> set[str]:
    added = (security_of(container).get("capabilities") or {}).get("add") or ()
    return set(added) - {"NET_BIND_SERVICE"}


def volumes(pod: CheckedPod) -> Violation | None:
    bad = {
        volume["name"]: next((kind for kind in _OTHER_VOLUMES if volume.get(kind) is not None), "unknown")
        for volume in pod.spec.get("volumes") or []
        if not any(volume.get(kind) is not None for kind in _ALLOWED_VOLUMES)
    }
    if not bad:
        return None
    kinds = sorted(set(bad.values()))
    verb = plural("uses", bad, many="use")
    detail = f"{named('volume', list(bad))} {verb} {plural('restricted volume type', kinds)} {quoted(kinds)}"
    return Violation("restricted volume types", detail)


def run_as_non_root(pod: CheckedPod) -> Violation | None:
    reason = "runAsNonRoot != true"
    non_root = pod.security.get("runAsNonRoot")
    if violators := setters(non_root is False, pod.names_of(lambda security: security.get("runAsNonRoot") is False)):
        return Violation(reason, f"{violators} must not set securityContext.runAsNonRoot=false")
    silent = [] if non_root else pod.names_of(lambda security: security.get("runAsNonRoot") is None)
    detail = f"pod or {named('container', silent)} must set securityContext.runAsNonRoot=true"
    return Violation(reason, detail) if silent else None


def run_as_user(pod: CheckedPod) -> Violation | None:
    violators = setters(
        pod.security.get("runAsUser") == 0, pod.names_of(lambda security: security.get("runAsUser") == 0)
    )
    return Violation("runAsUser=0", f"{violators} must not set runAsUser=0") if violators else None


def _restricted(name: str, revisions: dict[int, CheckPod], *overrides: str) -> Check:
    return Check(name, Level.restricted, revisions, frozenset(overrides))


def _not_on_windows(check: CheckPod) -> CheckPod:
    """Skip Windows pods, which must not set the field."""
    return unless(lambda pod: pod.is_windows, check)


def _not_with_own_users(check: CheckPod) -> CheckPod:
    return unless(lambda pod: pod.has_own_users, check)


RESTRICTED_CHECKS = [
    _restricted("allowPrivilegeEscalation", {8: privilege_escalation, 25: _not_on_windows(privilege_escalation)}),
    _restricted(
        "capabilities_restricted", {22: capabilities, 25: _not_on_windows(capabilities)}, "capabilities_baseline"
    ),
    _restricted("procMount_restricted", {35: proc_mount}, "procMount"),
    _restricted("restrictedVolumes", {0: volumes}, "hostPathVolumes"),
    _restricted("runAsNonRoot", {0: run_as_non_root, 35: _not_with_own_users(run_as_non_root)}),
    _restricted("runAsUser", {23: run_as_user, 35: _not_with_own_users(run_as_user)}),
    _restricted(
        "seccompProfile_restricted",
        {19: seccomp_required, 25: _not_on_windows(seccomp_required)},
        "seccompProfile_baseline",
    ),
]
"""Sorted by id, the order of reports, after the baseline checks."""
