"""Deployments, replica sets and pods in a namespace of their own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from awaiting import until, until_all
from controllers_on_a_server import ControlledServer

from pilothouse.client import Json, ResourceClient, name_of

LABELS = {"app": "web"}
_numbers = count(1)


class Workloads:
    def __init__(self, server: ControlledServer, namespace: str) -> None:
        self.server = server
        self.namespace = namespace

    @classmethod
    async def in_new_namespace(cls, server: ControlledServer) -> Workloads:
        name = f"w{next(_numbers)}"
        await server.create_namespace(name)
        return cls(server, name)

    def of(self, resource: str, api_version: str = "v1") -> ResourceClient:
        return self.server.client.resource(api_version, resource, namespace=self.namespace)

    @property
    def pods(self) -> ResourceClient:
        return self.of("pods")

    @property
    def replica_sets(self) -> ResourceClient:
        return self.of("replicasets", "apps/v1")

    @property
    def deployments(self) -> ResourceClient:
        return self.of("deployments", "apps/v1")

    async def deploy(self, replicas: int = 2, image: str = "one", **spec: object) -> Json:
        return await self.deployments.create(workload(replicas, image, **spec))

    async def set_image(self, image: str) -> None:
        containers = [{"name": "c", "image": image}]
        await self.deployments.patch("web", {"spec": {"template": {"spec": {"containers": containers}}}})

    async def until_deployed(self, holds: Callable[[Json], object]) -> Json:
        """The deployment, once something holds of its status."""
        return await until(self.deployments, "web", lambda found: holds(found.get("status") or {}))

    async def until_complete(self) -> Json:
        def complete(found: Json) -> bool:
            status, wanted = found.get("status") or {}, found["spec"]["replicas"]
            is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
            names = ("replicas", "updatedReplicas", "availableReplicas")
            return is_seen and all(status.get(name, 0) == wanted for name in names)

        return await until(self.deployments, "web", complete)

    async def until_pods(self, number: int) -> list[Json]:
        return await until_all(self.pods, lambda found: len(found) == number)

    async def set_of(self, image: str, holds: Callable[[Json], object] = bool) -> Json:
        """The replica set with the image, once something holds of it."""

        def found(replica_sets: list[Json]) -> list[Json]:
            return [each for each in replica_sets if image_of(each) == image and holds(each)]

        (replica_set,) = found(await until_all(self.replica_sets, found))
        return replica_set

    async def until_told(self, *messages: str) -> list[Json]:
        """The events, once these messages are among them."""
        return await until_all(self.of("events"), lambda told: {each["message"] for each in told} >= {*messages})


def workload(replicas: int = 2, image: str = "one", **spec: object) -> Json:
    """Of any kind that has a template and a selector."""
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}
    wanted = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template, **spec}
    return {"metadata": {"name": "web"}, "spec": wanted}


def image_of(obj: Json) -> str:
    image: str = obj["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def condition(obj: Json, type_: str) -> Json:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    found: Json = next((each for each in conditions if each["type"] == type_), {})
    return found


def names(objects: list[Json]) -> set[str]:
    return {name_of(each) for each in objects}
