"""Warnings about existing pods of a namespace with a stricter level. Existing pods keep running."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from pilothouse.kube.admission.podsecurity.checks import CheckedPod
from pilothouse.kube.admission.podsecurity.evaluator import evaluate, in_short
from pilothouse.kube.admission.podsecurity.policy import LevelVersion
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, metadata, name_of

_MOST_PODS = 3000
_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Alike:
    """Pods with equal violations: the first name and the count."""

    name: str
    count: int

    def __str__(self) -> str:
        others = self.count - 1
        return self.name + (f" (and {others} other pod{'s' if others > 1 else ''})" if others else "")


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
            known = faults.get(wrong := in_short(violations))
            first = min(known.name, name_of(pod)) if known else name_of(pod)
            faults[wrong] = _Alike(first, known.count + 1 if known else 1)
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
