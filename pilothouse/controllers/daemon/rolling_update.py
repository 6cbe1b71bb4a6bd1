"""Rolling update plan: old pods to replace next, within maxSurge and maxUnavailable.

Placement runs first: it leaves at most one pod per node (during a surge, one old and one new) and creates missing pods.
Terminating pods do not count, so that an update proceeds while nodes are down.
"""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.controllers.daemon.node_fit import Fit
from pilothouse.controllers.daemon.placement import Plan
from pilothouse.controllers.daemon.strategy import max_surge, max_unavailable
from pilothouse.controllers.daemon.view import DaemonView
from pilothouse.kinds.deletion import is_deleting
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_NOWHERE = Fit(should_run=False, may_stay=False)


@dataclass(frozen=True, slots=True)
class _Pair:
    """New and old pod of a node; `confused` if there are several of either."""

    new: Json | None = None
    old: Json | None = None
    is_confused: bool = False


def plan_update(view: DaemonView) -> Plan:
    """Return the nodes that get a new pod and the old pods to delete."""
    if all(view.is_updated(pod) for pods in view.pods.values() for pod in pods):
        return Plan()
    surge = max_surge(view.daemon_set, view.desired)
    return _surging(view, surge) if surge else _replacing(view, max_unavailable(view.daemon_set, view.desired))


def _pairs(view: DaemonView) -> dict[str, _Pair]:
    """Return the pairs of all nodes with pods and all eligible nodes."""
    wanted = {node: () for node, fit in view.fits.items() if fit.should_run}
    return {node: _pair(view, pods) for node, pods in {**wanted, **view.pods}.items()}


def _pair(view: DaemonView, pods: Sequence[Json]) -> _Pair:
    new: list[Json] = []
    old: list[Json] = []
    for pod in pods:
        if not is_deleting(pod):
            (new if view.is_updated(pod) else old).append(pod)
    if len(new) > 1 or len(old) > 1:
        return _Pair(is_confused=True)
    return _Pair(new[0] if new else None, old[0] if old else None)


def _replacing(view: DaemonView, most: int) -> Plan:
    """Delete old pods: unavailable pods at once, available pods up to maxUnavailable."""
    unavailable, broken, candidates = 0, [], []
    for pair in _pairs(view).values():
        if pair.is_confused or (pair.new is None) is (pair.old is None):
            unavailable += 1
        elif pair.old is None:
            unavailable += not view.is_available(pair.new or {})
        elif not view.is_available(pair.old):
            broken.append(pair.old)
            unavailable += 1
        else:
            candidates.append(pair.old)
    return Plan(pods=broken + candidates[: max(0, most - unavailable)])


def _surging(view: DaemonView, most: int) -> Plan:
    """Create new pods beside old pods; old pods are deleted once the new ones are available."""
    surging, available = 0, 0
    done: list[Json] = []
    unwanted: list[Json] = []
    needed: list[str] = []
    candidates: list[str] = []
    for node, pair in _pairs(view).items():
        if pair.is_confused:
            surging += 1
            continue
        is_served = view.is_available(pair.old or pair.new or {})
        available += is_served
        if pair.old is None:
            continue
        if pair.new is not None:
            if view.is_available(pair.new):
                done.append(pair.old)
            else:
                surging += 1
        elif view.fits.get(node, _NOWHERE).should_run:
            (candidates if is_served else needed).append(node)
        else:
            (unwanted if is_served else done).append(pair.old)
    # A node that no longer matches keeps its pod until another node has an available one.
    spare = max(0, available - view.desired)
    return Plan(nodes=needed + candidates[: max(0, most - surging)], pods=done + unwanted[:spare])
