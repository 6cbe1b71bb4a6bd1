"""Evaluation of a pod at a level and version, and warnings about existing pods of a namespace with a stricter level.

Existing pods keep running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from pilothouse.kube.admission.podsecurity.baseline import BASELINE_CHECKS
from pilothouse.kube.admission.podsecurity.checks import CheckedPod, CheckPod, Violation
from pilothouse.kube.admission.podsecurity.policy import Level, LevelVersion
from pilothouse.kube.admission.podsecurity.restricted import RESTRICTED_CHECKS
from pilothouse.machinery import release
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, metadata, name_of

_NEWEST = max(minor for check in (*BASELINE_CHECKS, *RESTRICTED_CHECKS) for minor in check.revisions)

_MOST_PODS = 3000
_SECONDS = 1.0


def evaluate(wanted: LevelVersion, pod: CheckedPod) -> list[Violation]:
    """Return the violations of the pod."""
    if wanted.level is Level.privileged:
        return []
    newest = min(_NEWEST, release.current().minor)
    minor = newest if wanted.minor is None else min(wanted.minor, newest)
    result = (check(pod) for check in _checks(wanted.level, minor))
    return [violation for violation in result if violation is not None]


@lru_cache
def _checks(level: Level, minor: int) -> tuple[CheckPod, ...]:
    """Return the checks of the level. The restricted level includes baseline checks without an override."""
    own = [] if level is Level.baseline else [check for check in RESTRICTED_CHECKS if check.revision(minor)]
    overridden = {name for check in own for name in check.overrides}
    inherited = [check for check in BASELINE_CHECKS if check.id not in overridden]
    revisions = (check.revision(minor) for check in (*inherited, *own))
    return tuple(revision for revision in revisions if revision is not None)


def in_detail(violations: list[Violation]) -> str:
    return ", ".join(map(str, violations))


def in_short(violations: list[Violation]) -> str:
    return ", ".join(violation.reason for violation in violations)


@dataclass(frozen=True, slots=True)
class _Alike:
    """Pods with equal violations: the first name and the count."""

    name: str
    count: int

    def __str__(self) -> str:
        remaining = self.count - 1
        return self.name + (f" (and {remaining} other pod{'s' if remaining > 1 else ''})" if remaining else "")


def warnings_about(
    pods: list[Json], namespace: str, enforced: LevelVersion, *, now: Callable[[], float] = time.monotonic
) -> list[str]:
    """Return warnings within one second. An incomplete check is reported as a warning."""
    deadline = now() + _SECONDS
    faults: dict[str, _Alike] = {}
    checked = 0
    for pod in pods[:_MOST_PODS]:
        checked += 1
        if violations := evaluate(enforced, CheckedPod(metadata(pod), pod.get("spec") or {})):
            existing = faults.get(wrong := in_short(violations))
            first = min(existing.name, name_of(pod)) if existing else name_of(pod)
            faults[wrong] = _Alike(first, existing.count + 1 if existing else 1)
        if now() > deadline:
            break
    return list(_worded(faults, namespace, enforced, checked=checked, total=len(pods)))


def _worded(
    faults: dict[str, _Alike], namespace: str, enforced: LevelVersion, *, checked: int, total: int
) -> Iterator[str]:
    if checked < total:
        yield f"new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
    if faults:
        level = quote(str(enforced))
        yield f"existing pods in namespace {quote(namespace)} violate the new PodSecurity enforce level {level}"
    yield from sorted(f"{alike}: {wrong}" for wrong, alike in faults.items())


def one_of_each_controller_first(pods: Iterable[Json]) -> list[Json]:
    """Put the first pod of each controller first: pods of a controller are alike, and time is bounded."""
    first: list[Json] = []
    others: list[Json] = []
    seen: set[str] = set()
    for pod in pods:
        owners = metadata(pod).get("ownerReferences") or []
        controller = next((owner["uid"] for owner in owners if owner.get("controller")), None)
        (others if controller in seen else first).append(pod)
        if controller is not None:
            seen.add(controller)
    return first + others
