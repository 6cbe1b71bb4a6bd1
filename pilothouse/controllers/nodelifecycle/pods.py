"""Marking of pods on unresponsive nodes as not ready, in place of the kubelet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pilothouse.client.events.event import WARNING
from pilothouse.client.events.recorder import EventRecorder
from pilothouse.client.rest.client import Client
from pilothouse.controllers.resources import PODS
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, namespace_of
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import format_time


async def mark_pods_not_ready(client: Client, recorder: EventRecorder, pods: Iterable[Json], now: datetime) -> None:
    """Mark all pods not ready, continuing after errors. Raises the last StatusError."""
    failure: StatusError | None = None
    for pod in pods:
        changed = not_ready(pod, now)
        if changed is None:
            continue
        try:
            await client.for_resource(PODS, namespace=namespace_of(pod)).update_status(changed)
        except NotFound:
            continue
        except StatusError as error:
            failure = error
        recorder.event(pod, WARNING, "NodeNotReady", "Node is not ready")
    if failure is not None:
        raise failure


def not_ready(pod: Json, now: datetime) -> Json | None:
    """Return the pod with Ready set to False; None if already False or absent."""
    status = pod.get("status") or {}
    conditions = [*(status.get("conditions") or ())]
    for index, condition in enumerate(conditions):
        if condition["type"] == "Ready" and condition.get("status") != "False":
            conditions[index] = condition | {"status": "False", "lastTransitionTime": format_time(now)}
            return {**pod, "status": {**status, "conditions": conditions}}
    return None
