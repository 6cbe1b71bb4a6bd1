"""Fills a server with the objects of so many nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from http import HTTPStatus

from cluster import objects
from cluster.api import Api, Cluster
from cluster.kubelet import configuration_of, name_of
from pilothouse.machinery.objects import Json

_CONNECTIONS, _AT_ONCE = 4, 6
_KINDS = {"configmaps": "ConfigMap", "secrets": "Secret"}
_Written = tuple[str, Json, str]


async def seed(cluster: Cluster, nodes: range, pods: int) -> None:
    """Namespaces first, then all others, some at once. What is there already stays."""
    clients = [await cluster.client() for _ in range(_CONNECTIONS)]
    for namespace in sorted({objects.namespace_of(node) for node in nodes}):
        await _namespace(clients[0], namespace)
    todo = (each for node in nodes for each in _objects_of(node, pods))
    await asyncio.gather(*(_write_all(client, todo) for client in clients for _ in range(_AT_ONCE)))
    for client in clients:
        client.close()


async def _write_all(api: Api, todo: Iterator[_Written]) -> None:
    for path, body, resource in todo:
        await _ensure(api, path, body, resource)


async def _namespace(api: Api, name: str) -> None:
    for each in (name, "kube-node-lease"):
        await _ensure(api, "/api/v1/namespaces", _plain("Namespace", each), "namespaces")
    own = f"/api/v1/namespaces/{name}"
    await _ensure(api, f"{own}/serviceaccounts", _plain("ServiceAccount", "default"), "serviceaccounts")
    shared = objects.config_object("ConfigMap", "kube-root-ca.crt")
    await _ensure(api, f"{own}/configmaps", shared, "configmaps")


def _plain(kind: str, name: str) -> Json:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


async def _ensure(api: Api, path: str, body: Json, resource: str) -> None:
    """Raises Refused for any other reason than that it is there."""
    await api.write("POST", path, body, resource, or_else=HTTPStatus.CONFLICT)


def _objects_of(node: int, pods: int) -> Iterator[_Written]:
    name, root = name_of(node), objects.root(node)
    yield "/api/v1/nodes", objects.node_object(name), "nodes"
    yield objects.LEASES, objects.lease(name), "leases"
    for resource, own in configuration_of(node)[1:]:
        yield f"{root}/{resource}", objects.config_object(_KINDS[resource], own), resource
    for number in range(pods):
        yield f"{root}/pods", objects.pod(f"web-{node}-{number}", node=name, padded=True), "pods"
