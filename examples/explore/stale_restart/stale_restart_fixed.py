"""A Cluster has a PersistentVolumeClaim for each of its nodes. Scaling down deletes the claims of removed nodes.

Fixed: before a delete, the operator reads the Cluster itself. The event of a newer Cluster starts the next reconcile.
"""

from pilothouse.client import Client
from pilothouse.operator import Json, Manager, Object, Reconciler, kind, to_json


@kind(group="explore.example.com", version="v1", status=True)
class Cluster(Object):
    nodes: int = 1


def claim(name: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


class ClusterReconciler(Reconciler[Cluster]):
    owns = ["v1 PersistentVolumeClaim"]

    async def reconcile(self, cluster: Cluster) -> None:
        names = [f"{cluster.metadata.name}-{node}" for node in range(cluster.nodes)]
        for name in names:
            await self.apply(cluster, claim(name))
        for existing in self.list("v1 PersistentVolumeClaim", owner=cluster):
            if existing["metadata"]["name"] not in names and await self.is_current(cluster):
                await self.delete(existing)

    async def is_current(self, cluster: Cluster) -> bool:
        live = await self.cluster.read(to_json(cluster))
        return bool(live["metadata"]["generation"] == cluster.metadata.generation)


def manager(client: Client | None = None) -> Manager:
    return Manager(reconcilers=[ClusterReconciler], config=client)


if __name__ == "__main__":
    manager().run()
