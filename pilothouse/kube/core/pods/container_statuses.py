"""Container statuses: allowed transitions and valid contents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.kube.core.pods.validation.operating_system import NOT_ON_WINDOWS
from pilothouse.kube.validation.fields import one_of
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, Path, duplicate, forbidden, invalid, required, too_long
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity
from pilothouse.machinery.validation.pattern_format import inclusive_range_error, is_valid_group_id, is_valid_user_id

_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MAX_HEALTH_MESSAGE = 1024
_MAX_UINT32 = 2**32 - 1
_CLAIM_NAMES = (
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' "
    "when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
)
_OLD_CLAIM_NAMES = (
    "must match one of the container's resource claims in a format "
    "'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
)
_REVIVED = "may not be transitioned to non-terminated state"


def validate_transitions(status: Json, stored: Json, spec: Json, path: Path) -> Errors:
    """Reject restarts of terminated containers, except where the restart policy allows a restart."""
    if not all_could_restart(spec):
        for kind, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
            by_name = {container.get("name"): container for container in reversed(spec.get(containers) or ())}
            for position, ended in _revived(status, stored, kind):
                if not _may_restart(by_name.get(ended.get("name")), spec, ended["state"]["terminated"]):
                    yield forbidden(path.child(kind).index(position).child("state"), _REVIVED)
    for position, _ in _revived(status, stored, "ephemeralContainerStatuses"):
        at = path.child("ephemeralContainerStatuses").index(position)
        yield forbidden(at.child("state"), _REVIVED)


def _revived(status: Json, stored: Json, kind: str) -> Iterator[tuple[int, Json]]:
    """Yield the stored statuses of terminated containers that the update reports as not terminated."""
    names = {container.get("name") for container in status.get(kind) or () if not _has_terminated(container)}
    for position, each in enumerate(stored.get(kind) or ()):
        if _has_terminated(each) and each.get("name") in names:
            yield position, each


def _has_terminated(status: Json) -> bool:
    return (status.get("state") or {}).get("terminated") is not None


def all_could_restart(spec: Json) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for kind in ("containers", "initContainers")
        for container in spec.get(kind) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def _may_restart(container: Json | None, spec: Json, terminated: Json) -> bool:
    """Report whether the container's restart rules and policy, or the pod's policy, allow a restart."""
    if container is None:
        return False
    code, policy = terminated.get("exitCode") or 0, container.get("restartPolicy")
    if policy is not None:
        for rule in container.get("restartPolicyRules") or ():
            if rule.get("exitCodes") is not None and _matches_exit_code(code, rule["exitCodes"]):
                return True
    policy = policy or spec.get("restartPolicy")
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _matches_exit_code(code: int, rule: Json) -> bool:
    values = rule.get("values") or ()
    return code in values if rule.get("operator") == "In" else code not in values


def validate_users(statuses: Sequence[Json], path: Path, os_name: str) -> Errors:
    for position, status in enumerate(statuses):
        user = (status.get("user") or {}).get("linux")
        if user is None:
            continue
        at = path.index(position).child("user", "linux")
        if os_name == "windows":
            yield forbidden(at, NOT_ON_WINDOWS)
        elif os_name == "linux":
            for message in _user_id_problems(user.get("uid") or 0):
                yield invalid(at.child("uid"), user["uid"], message)
            for message in is_valid_group_id(user.get("gid") or 0):
                yield invalid(at.child("gid"), user["gid"], message)
            for position, group in enumerate(user.get("supplementalGroups") or ()):
                for message in is_valid_group_id(group):
                    yield invalid(at.child("supplementalGroups").index(position), group, message)


def _user_id_problems(user: int) -> list[str]:
    """Return the problems of the user id that a runtime reports, any uid_t since 1.37."""
    if not version_rules.holds("AnyUserOfContainerStatuses"):
        return is_valid_user_id(user)
    return [] if 0 <= user <= _MAX_UINT32 else [inclusive_range_error(0, _MAX_UINT32)]


def validate_no_allocated_resources(statuses: Sequence[Json], path: Path) -> Errors:
    for position, status in enumerate(statuses):
        if status.get("allocatedResourcesStatus"):
            at = path.index(position).child("allocatedResourcesStatus")
            yield forbidden(at, "must not be specified in container status")


def validate_allocated_resources(
    statuses: Sequence[Json], containers: Sequence[Json], extended: Json | None, path: Path
) -> Errors:
    """Validate the health of resources. `extended` is the pod's claim for extended resources."""
    by_extended_claim = version_rules.holds("DevicesOfPodStatuses")
    by_name = {container.get("name"): container for container in reversed(containers)}
    for position, status in enumerate(statuses):
        for index, allocated in enumerate(status.get("allocatedResourcesStatus") or ()):
            at = path.index(position).child("allocatedResourcesStatus").index(index)
            if (container := by_name.get(status.get("name"))) is not None:
                name = allocated.get("name") or ""
                name_path = at.child("name")
                resources = container.get("resources") or {}
                if not name.startswith("claim:"):
                    if name not in (resources.get("requests") or {}):
                        yield invalid(name_path, name, "must match one of the container's resource requests")
                else:
                    claims = resources.get("claims") or ()
                    names = [
                        f"{claim.get('name')}/{claim['request']}" if claim.get("request") else str(claim.get("name"))
                        for claim in claims
                    ]
                    known = name in [f"claim:{claim}" for claim in names]
                    if not known and by_extended_claim:
                        known = _is_of_extended_resource(name, container, extended or {})
                    if not known:
                        yield invalid(name_path, name, _CLAIM_NAMES if by_extended_claim else _OLD_CLAIM_NAMES)
            yield from _validate_health(allocated.get("resources") or (), at.child("resources"))


def _is_of_extended_resource(name: str, container: Json, claim: Json) -> bool:
    """Report whether `claim:<claim>/<request>` names a request for an extended resource of the container."""
    claim_name, _, request = name.removeprefix("claim:").partition("/")
    if not claim or not request or claim_name != (claim.get("resourceClaimName") or ""):
        return False
    requests = (container.get("resources") or {}).get("requests") or {}
    return any(
        mapping.get("containerName") == container.get("name")
        and mapping.get("requestName") == request
        and parse_quantity(requests.get(mapping.get("resourceName")) or "0").sign != 0
        for mapping in claim.get("requestMappings") or ()
    )


def _validate_health(resources: Sequence[Json], path: Path) -> Errors:
    seen: set[str] = set()
    for position, resource in enumerate(resources):
        at, name, message = path.index(position), resource.get("resourceID") or "", resource.get("message")
        yield from one_of(resource.get("health") or "", at.child("health"), _HEALTH)
        if message == "":
            yield required(at.child("message"), "must be non-empty if specified")
        elif message is not None and len(message.encode()) > _MAX_HEALTH_MESSAGE:
            yield too_long(at.child("message"), _MAX_HEALTH_MESSAGE)
        if name in seen:
            yield duplicate(at.child("resourceID"), name)
        seen.add(name)
