"""Copies each ConfigMap with the label mirror=true into the namespace "mirror", with pilothouse.operator."""

from pilothouse.client import Json
from pilothouse.operator import Manager, Reconciler, matches_labels


class Mirror(Reconciler[Json]):
    kind = "v1 ConfigMap"
    concurrency = 16
    predicates = (matches_labels("mirror=true"),)
    finalizer = "demo.example.com/mirror"

    async def reconcile(self, source: Json) -> None:
        await self.apply(None, copy_of(source) | {"data": source.get("data", {})})

    async def finalize(self, source: Json) -> None:
        await self.delete(copy_of(source))


def copy_of(source: Json) -> Json:
    meta = {"name": source["metadata"]["name"], "namespace": "mirror"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


Manager([Mirror]).run()
