"""Status of a DaemonSet."""

from __future__ import annotations

from pilothouse.client.rest.client import Client
from pilothouse.controllers.daemon.view import DaemonView, oldest_first
from pilothouse.controllers.resources import DAEMON_SETS
from pilothouse.kinds.pods import is_ready
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberMisscheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
)


def count(view: DaemonView) -> dict[str, int]:
    """Return the status counts. For several pods on a node, the oldest counts."""
    counts = dict.fromkeys(_COUNTS, 0)
    for node, fit in view.fits.items():
        pods = view.pods.get(node) or ()
        counts["desiredNumberScheduled"] += fit.should_run
        if not fit.should_run:
            counts["numberMisscheduled"] += bool(pods)
        elif pods:
            pod = pods[0] if len(pods) == 1 else oldest_first(pods)[0]
            counts["currentNumberScheduled"] += 1
            if is_ready(pod):
                counts["numberReady"] += 1
                counts["numberAvailable"] += not view.min_ready_seconds or view.is_available(pod)
            counts["updatedNumberScheduled"] += view.is_updated(pod)
    counts["numberUnavailable"] = counts["desiredNumberScheduled"] - counts["numberAvailable"]
    return counts


async def write_status(client: Client, daemon_set: Json, counts: dict[str, int], *, is_observed: bool) -> None:
    """Write the counts if changed; `is_observed` also updates observedGeneration.

    Raises StatusError after a failed retry.
    """
    status, generation = daemon_set.get("status") or {}, metadata(daemon_set).get("generation") or 0
    is_known = all((status.get(field) or 0) == number for field, number in counts.items())
    if is_known and (status.get("observedGeneration") or 0) >= generation:
        return
    sets = client.for_resource(DAEMON_SETS, namespace=namespace_of(daemon_set))
    seen = {"observedGeneration": generation} if is_observed else {}
    try:
        await sets.update_status({**daemon_set, "status": {**status, **counts, **seen}})
    except StatusError:
        fresh = await sets.get(name_of(daemon_set))
        await sets.update_status({**fresh, "status": {**(fresh.get("status") or {}), **counts, **seen}})
