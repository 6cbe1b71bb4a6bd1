"""Objects of every built-in kind, right and wrong, through all verbs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from fuzz_budget import budget
from fuzz_objects import Generator
from fuzz_verdicts import bounded, check
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiserver import GroupVersion
from pilothouse.client import GroupVersionKind, Json
from pilothouse.testing import API, Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
ACCEPTS = ["Table", "PartialObjectMetadata"]
MERGES = ["application/merge-patch+json", "application/strategic-merge-patch+json"]
POINTERS = ["", "/", "/spec", "/metadata/labels", "/metadata/name", "/spec/-", "/a~1b", "/metadata/finalizers/0", "/~"]
OPERATIONS = ["add", "remove", "replace", "test", "move", "copy", "nothing"]


@dataclass(frozen=True)
class Endpoint:
    path: str
    kind: GroupVersionKind
    subresources: tuple[tuple[str, GroupVersionKind], ...]
    """Those that can be updated."""


async def endpoints(api: API) -> list[Endpoint]:
    found = []
    for root in ("/api", "/apis"):
        for group in (await api.request("GET", root, accept=AGGREGATED)).json["items"]:
            for version in group["versions"]:
                own = GroupVersion(group["metadata"].get("name", ""), version["version"])
                found += [_endpoint(root, own, each) for each in version["resources"] if "create" in each["verbs"]]
    return found


def _endpoint(root: str, own: GroupVersion, resource: Json) -> Endpoint:
    space = "/namespaces/default" if resource["scope"] == "Namespaced" else ""
    inner = [each for each in resource.get("subresources") or () if {"update", "patch"} <= set(each["verbs"])]
    subresources = tuple((each["subresource"], _kind(each, own)) for each in inner if each["subresource"] != "proxy")
    return Endpoint(f"{root}/{own}{space}/{resource['resource']}", _kind(resource, own), subresources)


def _kind(resource: Json, own: GroupVersion) -> GroupVersionKind:
    kind = resource["responseKind"]
    return GroupVersionKind(kind["group"], kind["version"], kind["kind"]) if kind["version"] else own.kind(kind["kind"])


@dataclass(frozen=True)
class Session:
    """What one client does to one resource."""

    api: API
    make: Generator
    endpoint: Endpoint

    async def run(self, name: str) -> None:
        obj = self.make.object(self.endpoint.kind, name)
        made = await self.ask("POST", self.endpoint.path, obj)
        if made.status == 201 and "uid" in made.json["metadata"]:
            target = f"{self.endpoint.path}/{made.json['metadata']['name']}"
            await self._change(target, made.json)
            await self._read(target)
            await self.ask("DELETE", target, self.make.part(GroupVersionKind("", "v1", "DeleteOptions")))

    async def _change(self, target: str, made: Json) -> None:
        kind, name = self.endpoint.kind, made["metadata"]["name"]
        changed = self.make.mutated(made)
        await self.ask("PUT", target, self.make.named(changed, kind, name))
        await self.ask("PATCH", target, self.make.part(kind), media=self.make.random.choice(MERGES))
        applied = self.make.named(self.make.part(kind), kind, name)
        manager = f"{target}?fieldManager={self.make.random.choice('ab')}&force=true"
        await self.ask("PATCH", manager, applied, media="application/apply-patch+yaml")
        await self.ask("PATCH", target, self._operations(), media="application/json-patch+json")
        for subresource, own in self.endpoint.subresources:
            body = self.make.object(own, name)
            await self.ask("PUT", f"{target}/{subresource}", body)
            await self.ask("PATCH", f"{target}/{subresource}", body, media=self.make.random.choice(MERGES))

    def _operations(self) -> list[Any]:
        choose = self.make.random.choice
        values: list[Any] = [None, 1, "x", [], {}, {"a": "b"}]
        return [
            {"op": choose(OPERATIONS), "path": choose(POINTERS), "from": choose(POINTERS), "value": choose(values)}
            for _ in range(choose([1, 2, 3]))
        ]

    async def _read(self, target: str) -> None:
        for kind in ACCEPTS:
            await self.ask("GET", target, accept=f"application/json;as={kind};v=v1;g=meta.k8s.io")
        for media in ("application/yaml", "application/vnd.kubernetes.protobuf"):
            await self.ask("GET", target, accept=media)

    async def ask(self, method: str, target: str, body: Any = None, **more: str) -> Answer:
        before = await self._stored(target)
        with bounded(5):
            answer = await self.api.request(method, target, body, **more)
        check(answer)
        if answer.status >= 400:
            assert await self._stored(target) == before, "a refused write has left something behind"
        return answer

    async def _stored(self, target: str) -> bytes:
        return (await self.api.request("GET", target.partition("?")[0])).body if target != self.endpoint.path else b""


@budget(120)
@given(seed=st.integers(0, 1 << 32))
async def test_every_object_is_taken_or_refused_and_nothing_is_half_written(api: API, seed: int) -> None:
    random = Random(seed)
    endpoint = random.choice(await endpoints(api))
    await Session(api, Generator(random), endpoint).run(f"o{seed}")
