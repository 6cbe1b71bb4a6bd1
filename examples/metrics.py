"""The API behind `kubectl top`: metrics of the cluster's nodes and pods, computed in memory and stored nowhere.

python examples/metrics.py --register
kubectl top nodes
kubectl top pods

There is no kubelet to ask here, so every container uses the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pilothouse.builder import (
    APIServer,
    GroupVersionResource,
    Json,
    ObjectMeta,
    ObjectName,
    Reconciler,
    Requeue,
    Resource,
)
from pilothouse.errors import NotFound

server = APIServer(group="metrics.k8s.io", name="metrics-server", namespace="kube-system")
NODES, PODS = GroupVersionResource("", "v1", "nodes"), GroupVersionResource("", "v1", "pods")
WINDOW = 15


class Samples:
    """The newest ones. Clients can only read them: there is no `create`, `update` or `delete`."""

    def __init__(self) -> None:
        self.newest: dict[ObjectName, Resource] = {}

    async def get(self, name: str, namespace: str) -> Resource | None:
        return self.newest.get(ObjectName(namespace, name))

    async def list(self, namespace: str) -> Sequence[Resource]:
        return [sample for key, sample in self.newest.items() if namespace in ("", key.namespace)]


nodes, pods = Samples(), Samples()


@server.resource(version="v1beta1", plural="nodes", namespaced=False, storage=nodes)
class NodeMetrics(Resource):
    """What a node uses."""

    timestamp: datetime
    window: str
    usage: dict[str, str]


@dataclass
class ContainerMetrics:
    name: str
    usage: dict[str, str]


@server.resource(version="v1beta1", plural="pods", storage=pods)
class PodMetrics(Resource):
    """What the containers of a pod use."""

    timestamp: datetime
    window: str
    containers: list[ContainerMetrics]


class Sampler(Reconciler[Resource]):
    """Takes a sample of an object when that changes, and once in each window."""

    source: GroupVersionResource
    samples: Samples

    def sample(self, obj: Json, metadata: ObjectMeta, end: datetime) -> Resource:
        raise NotImplementedError

    async def reconcile(self, key: ObjectName) -> Requeue | None:
        try:
            obj = self.lister(self.source).namespace(key.namespace).get(key.name)
        except NotFound:
            self.samples.newest.pop(key, None)
            return None
        metadata = ObjectMeta(name=key.name, namespace=key.namespace, labels=obj["metadata"].get("labels", {}))
        end = datetime.fromtimestamp(datetime.now(UTC).timestamp() // WINDOW * WINDOW, UTC)
        self.samples.newest[key] = self.sample(obj, metadata, end)
        return Requeue(after=WINDOW)


def name_in_cluster(obj: Json) -> list[str]:
    return [str(ObjectName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))]


@server.controller(PodMetrics, watches=[(PODS, name_in_cluster)])
class PodSampler(Sampler):
    source, samples = PODS, pods

    def sample(self, obj: Json, metadata: ObjectMeta, end: datetime) -> Resource:
        containers = [ContainerMetrics(container["name"], used_by(1)) for container in obj["spec"]["containers"]]
        return PodMetrics(metadata=metadata, timestamp=end, window=f"{WINDOW}s", containers=containers)


def node_of(pod: Json) -> list[str]:
    return [pod["spec"]["nodeName"]] if pod["spec"].get("nodeName") else []


@server.controller(NodeMetrics, watches=[(NODES, name_in_cluster), (PODS, node_of)])
class NodeSampler(Sampler):
    source, samples = NODES, nodes

    def sample(self, obj: Json, metadata: ObjectMeta, end: datetime) -> Resource:
        here = [pod["spec"]["containers"] for pod in self.lister(PODS).list() if node_of(pod) == [metadata.name]]
        return NodeMetrics(metadata=metadata, timestamp=end, window=f"{WINDOW}s", usage=used_by(sum(map(len, here))))


def used_by(containers: int) -> dict[str, str]:
    return {"cpu": f"{containers * 10}m", "memory": f"{containers * 20}Mi"}


if __name__ == "__main__":
    server.run()
