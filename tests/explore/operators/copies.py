"""A small operator: for each Copy, a ConfigMap and a Secret. `careless` forgets the Secret after a crash."""

from __future__ import annotations

from typing import Any

from pilothouse.client import Client
from pilothouse.errors import AlreadyExists
from pilothouse.operator import Manager, Object, Reconciler, kind


@kind(group="explore.example.com", version="v1", status=True)
class Copy(Object):
    text: str = ""


class CopyReconciler(Reconciler[Copy]):
    owns = ("v1 ConfigMap", "v1 Secret")

    async def reconcile(self, copy: Copy) -> None:
        name = copy.metadata.name
        for api_kind, part in (("ConfigMap", "data"), ("Secret", "stringData")):
            body: dict[str, Any] = {"apiVersion": "v1", "kind": api_kind, "metadata": {"name": name}}
            await self.apply(copy, body | {part: {"text": copy.text}})


class CarelessReconciler(Reconciler[Copy]):
    """Creates the Secret only together with the ConfigMap."""

    async def reconcile(self, copy: Copy) -> None:
        meta = {"name": copy.metadata.name, "namespace": copy.metadata.namespace}
        try:
            await self.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})
        except AlreadyExists:
            return
        await self.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta})


def careful(client: Client) -> Manager:
    return Manager([CopyReconciler], config=client)


def careless(client: Client) -> Manager:
    return Manager([CarelessReconciler], config=client)


if __name__ == "__main__":
    Manager([CarelessReconciler], name="careless", bind="127.0.0.1:0").run()
