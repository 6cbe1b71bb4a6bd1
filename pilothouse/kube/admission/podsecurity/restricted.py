"""Checks of the restricted level: pods must opt out of unneeded privileges."""

from __future__ import annotations

from pilothouse.kube.admission.podsecurity import checks
from pilothouse.kube.admission.podsecurity.baseline import proc_mount
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


def privilege_escalation(pod: checks.CheckedPod) -> checks.Violation | None:
    bad = pod.names_of(lambda security: security.get("allowPrivilegeEscalation") is not False)
    detail = f"{checks.named('container', bad)} must set securityContext.allowPrivilegeEscalation=false"
    return checks.Violation("allowPrivilegeEscalation != false", detail) if bad else None


def capabilities(pod: checks.CheckedPod) -> checks.Violation | None:
    keeping = pod.names_of(lambda security: "ALL" not in ((security.get("capabilities") or {}).get("drop") or ()))
    adding = {container["name"]: _added(container) for container in pod.containers if _added(container)}
    details = []
    if keeping:
        details.append(f'{checks.named("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        capabilities_text = checks.quoted(sorted(set().union(*adding.values())))
        containers = checks.named("container", list(adding))
        details.append(f"{containers} must not include {capabilities_text} in securityContext.capabilities.add")
    return checks.Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _added(container: Json) -> set[str]:
    added = (checks.security_of(container).get("capabilities") or {}).get("add") or ()
    return set(added) - {"NET_BIND_SERVICE"}


def volumes(pod: checks.CheckedPod) -> checks.Violation | None:
    bad = {
        volume["name"]: next((kind for kind in _OTHER_VOLUMES if volume.get(kind) is not None), "unknown")
        for volume in pod.spec.get("volumes") or []
        if not any(volume.get(kind) is not None for kind in _ALLOWED_VOLUMES)
    }
    if not bad:
        return None
    kinds = sorted(set(bad.values()))
    verb = checks.plural("uses", bad, many="use")
    types = f"{checks.plural('restricted volume type', kinds)} {checks.quoted(kinds)}"
    detail = f"{checks.named('volume', list(bad))} {verb} {types}"
    return checks.Violation("restricted volume types", detail)


def run_as_non_root(pod: checks.CheckedPod) -> checks.Violation | None:
    reason = "runAsNonRoot != true"
    non_root = pod.security.get("runAsNonRoot")
    if violators := checks.setters(
        non_root is False, pod.names_of(lambda security: security.get("runAsNonRoot") is False)
    ):
        return checks.Violation(reason, f"{violators} must not set securityContext.runAsNonRoot=false")
    silent = [] if non_root else pod.names_of(lambda security: security.get("runAsNonRoot") is None)
    detail = f"pod or {checks.named('container', silent)} must set securityContext.runAsNonRoot=true"
    return checks.Violation(reason, detail) if silent else None


def run_as_user(pod: checks.CheckedPod) -> checks.Violation | None:
    violators = checks.setters(
        pod.security.get("runAsUser") == 0, pod.names_of(lambda security: security.get("runAsUser") == 0)
    )
    return checks.Violation("runAsUser=0", f"{violators} must not set runAsUser=0") if violators else None


def _restricted(name: str, revisions: dict[int, checks.CheckPod], *overrides: str) -> checks.Check:
    return checks.Check(name, Level.restricted, revisions, frozenset(overrides))


def _not_on_windows(check: checks.CheckPod) -> checks.CheckPod:
    """Skip Windows pods, which must not set the field."""
    return checks.unless(lambda pod: pod.is_windows, check)


def _not_with_own_users(check: checks.CheckPod) -> checks.CheckPod:
    return checks.unless(lambda pod: pod.has_own_users, check)


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
        {19: checks.seccomp_required, 25: _not_on_windows(checks.seccomp_required)},
        "seccompProfile_baseline",
    ),
]
"""Sorted by id, the order of reports, after the baseline checks."""
