"""Owner graphs on a real server, and a model that says what a garbage collector has to make of them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from patience import PATIENCE

from pilothouse.client import Client, DeleteOptions, Json, ListOptions, ResourceClient, name_of, uid_of
from pilothouse.errors import NotFound


@dataclass(frozen=True, slots=True)
class Kind:
    api_version: str
    kind: str
    plural: str
    namespaced: bool = True


CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SECRET = Kind("v1", "Secret", "secrets")
CLUSTER_ROLE = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
WIDGET = Kind("example.com/v1", "Widget", "widgets")


@dataclass(frozen=True, slots=True)
class Reference:
    """To the thing of this number; with `wrong` its uid is another's."""

    owner: int
    wrong: bool = False
    block: bool = True


@dataclass(slots=True)
class Thing:
    kind: Kind
    namespace: str
    owners: list[Reference] = field(default_factory=list)


class Model:
    """The things that are there, by number."""

    def __init__(self) -> None:
        self.things: dict[int, Thing] = {}

    def delete(self, number: int, policy: str) -> None:
        if policy == "Orphan":
            for thing in self.things.values():
                thing.owners = [each for each in thing.owners if each.owner != number or each.wrong]
        self.things.pop(number, None)

    def settle(self) -> None:
        """What has only owners that are not there goes; what has others, too, forgets those that are not."""
        while gone := [number for number, thing in self.things.items() if thing.owners and not self._found(thing)]:
            for number in gone:
                del self.things[number]
        for thing in self.things.values():
            thing.owners = self._found(thing)

    def _found(self, thing: Thing) -> list[Reference]:
        return [each for each in thing.owners if not each.wrong and self._is_owner(each.owner, thing)]

    def _is_owner(self, number: int, thing: Thing) -> bool:
        owner = self.things.get(number)
        return owner is not None and (not owner.kind.namespaced or owner.namespace == thing.namespace)


class OwnerGraph:
    """Things as objects of a server. Numbers mean the same as in the model."""

    def __init__(self, client: Client, kinds: Sequence[Kind]) -> None:
        self._client = client
        self._kinds = kinds
        self._run = uuid.uuid4().hex[:12]
        self._objects: dict[int, tuple[Kind, Json]] = {}

    def use(self, client: Client) -> None:
        """Another way to the same server."""
        self._client = client

    async def create(self, number: int, thing: Thing) -> None:
        obj: Json = {
            "apiVersion": thing.kind.api_version,
            "kind": thing.kind.kind,
            "metadata": {
                "name": f"{self._run}-{number}",
                "labels": {"run": self._run, "number": str(number)},
                "ownerReferences": [self._reference(each) for each in thing.owners],
            },
        }
        self._objects[number] = thing.kind, await self._of(thing.kind, thing.namespace).create(obj)

    async def own(self, number: int, thing: Thing) -> None:
        """Gives an object the references of the thing."""
        kind, obj = self._objects[number]
        owners = [self._reference(each) for each in thing.owners]
        await self._of(kind, thing.namespace).patch(name_of(obj), {"metadata": {"ownerReferences": owners}})

    async def delete(self, number: int, policy: str) -> None:
        kind, obj = self._objects[number]
        namespace = obj["metadata"].get("namespace") or ""
        await self._of(kind, namespace).delete(name_of(obj), DeleteOptions(propagation_policy=policy))

    async def state(self) -> dict[int, set[str]]:
        """The uids of the owners of what is there, by number."""
        found: dict[int, set[str]] = {}
        for kind in self._kinds:
            listing = await self._of(kind, "").list(ListOptions(label_selector=f"run={self._run}"))
            for item in listing["items"]:
                owners = item["metadata"].get("ownerReferences") or ()
                found[int(item["metadata"]["labels"]["number"])] = {each["uid"] for each in owners}
        return found

    def expected(self, model: Model) -> dict[int, set[str]]:
        return {
            number: {uid_of(self._objects[each.owner][1]) for each in thing.owners}
            for number, thing in model.things.items()
        }

    async def until(self, model: Model) -> None:
        """Returns when the server has what the model has."""
        deadline, wanted = time.monotonic() + PATIENCE, self.expected(model)
        while (found := await self.state()) != wanted:
            assert time.monotonic() < deadline, f"found {found}, wanted {wanted}"
            await asyncio.sleep(0.005)

    async def until_looked_after(self, namespace: str) -> None:
        """Returns when the collector has seen everything that happened before: orphans of each kind are gone."""
        for kind in self._kinds:
            owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": str(uuid.uuid4())}]
            if not kind.namespaced:
                owners = [{"apiVersion": "v1", "kind": "Node", "name": "nobody", "uid": str(uuid.uuid4())}]
            name = f"{self._run}-sentinel"
            obj = {"apiVersion": kind.api_version, "kind": kind.kind}
            objects = self._of(kind, namespace)
            await objects.create({**obj, "metadata": {"name": name, "ownerReferences": owners}})
            await until_gone(self._client, kind, namespace, name)

    def _reference(self, reference: Reference) -> Json:
        kind, owner = self._objects[reference.owner]
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": name_of(owner),
            "uid": str(uuid.uuid4()) if reference.wrong else uid_of(owner),
            "blockOwnerDeletion": reference.block,
        }

    def _of(self, kind: Kind, namespace: str) -> ResourceClient:
        return self._client.resource(kind.api_version, kind.plural, namespace=namespace if kind.namespaced else "")


async def until_gone(client: Client, kind: Kind, namespace: str, name: str) -> None:
    objects = client.resource(kind.api_version, kind.plural, namespace=namespace if kind.namespaced else "")
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            found = await objects.get(name)
        except NotFound:
            return
        assert time.monotonic() < deadline, f"still there: {found}"
        await asyncio.sleep(0.005)
