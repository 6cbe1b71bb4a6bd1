"""Events of a kubelet about its node."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.client.events.event import NORMAL
from pilothouse.machinery.objects import Json, items, name_of
from pilothouse.nodes.pods.pod_events import PodEvent

_OF_KUBELETS = "Kubelet"


def node_condition_events(before: Json, after: Json) -> Iterator[PodEvent]:
    """Yield an event for each changed kubelet condition; initial conditions yield none."""
    said = {each["type"]: each["status"] for each in items(before, "status", "conditions")}
    for condition in items(after, "status", "conditions"):
        reason = condition.get("reason") or ""
        if said.get(condition["type"], condition["status"]) != condition["status"] and reason.startswith(_OF_KUBELETS):
            shown = f"Node{reason.removeprefix(_OF_KUBELETS)}"
            yield PodEvent(NORMAL, shown, f"Node {name_of(after)} status is now: {shown}")
