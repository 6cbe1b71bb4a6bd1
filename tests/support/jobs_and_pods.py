"""Jobs with a test that plays the kubelet for their pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from awaiting import until, until_all

from pilothouse.client import Client, Json, ResourceClient, name_of, uid_of

LONG_AGO = "2020-01-01T00:00:00Z"


@dataclass(frozen=True)
class JobsAndPods:
    client: Client
    namespace: str

    @property
    def jobs(self) -> ResourceClient:
        return self.client.resource("batch/v1", "jobs", namespace=self.namespace)

    @property
    def pods(self) -> ResourceClient:
        return self.client.resource("v1", "pods", namespace=self.namespace)

    @property
    def events(self) -> ResourceClient:
        return self.client.resource("v1", "events", namespace=self.namespace)

    async def create(self, name: str, *, restart: str = "Never", **spec: Any) -> Json:
        template = {"spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "i"}]}}
        return await self.jobs.create({"metadata": {"name": name}, "spec": {"template": template, **spec}})

    async def until_job(self, name: str, holds: Callable[[Json], object]) -> Json:
        """Return the job's status once something holds of it."""
        status: Json = (await until(self.jobs, name, lambda job: holds(job.get("status") or {})))["status"]
        return status

    async def until_condition(self, name: str, type_: str) -> Json:
        """Return the condition once it is true."""
        status = await self.until_job(name, lambda status: condition(status, type_).get("status") == "True")
        return condition(status, type_)

    async def until_active(self, count: int) -> list[Json]:
        """Return the pods that have not ended once there are so many, oldest first."""
        pods = await until_all(self.pods, lambda pods: len(active(pods)) == count)
        return sorted(active(pods), key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    async def until_replaced(self, pod: Json, count: int) -> list[Json]:
        """Return the pods that have not ended once there are so many and this one is not among them."""

        def holds(pods: list[Json]) -> bool:
            found = active(pods)
            return len(found) == count and uid_of(pod) not in map(uid_of, found)

        return active(await until_all(self.pods, holds))

    async def succeed(self, pod: Json) -> None:
        await self.set_status(pod, phase="Succeeded", containerStatuses=[_terminated(0)])

    async def fail(self, pod: Json, code: int = 1, **status: Any) -> None:
        await self.set_status(pod, phase="Failed", containerStatuses=[_terminated(code)], **status)

    async def set_status(self, pod: Json, **status: Any) -> None:
        await self.pods.patch(name_of(pod), {"status": status}, subresource="status")

    async def until_event(self, reason: str) -> Json:
        events = await until_all(self.events, lambda events: any(each["reason"] == reason for each in events))
        return next(each for each in events if each["reason"] == reason)


def active(pods: list[Json]) -> list[Json]:
    return [
        pod
        for pod in pods
        if pod["status"].get("phase") not in ("Succeeded", "Failed") and not pod["metadata"].get("deletionTimestamp")
    ]


def condition(status: Json, type_: str) -> Json:
    return next((each for each in status.get("conditions") or () if each["type"] == type_), {})


def _terminated(code: int) -> Json:
    ended = {"exitCode": code, "finishedAt": LONG_AGO, "startedAt": LONG_AGO}
    return {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": {"terminated": ended}}
