"""The sample controller: each Foo has a Deployment of its own, which is made again when it goes, and kept at its size.

python examples/sample_controller.py       # finds the server through the kubeconfig or the pod it runs in
kubectl create -f - <<< '{"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
  "metadata": {"name": "example"}, "spec": {"deploymentName": "example", "replicas": 1}}'

A Deployment that is there already and is not the Foo's own is left alone; an event says so.
"""

import asyncio
import contextlib
import logging
import signal

from pilothouse.client import (
    NORMAL,
    WARNING,
    Client,
    Controller,
    EventRecorder,
    EventSource,
    GroupVersionResource,
    Json,
    SharedInformerFactory,
    connect,
    enqueue_keys,
    enqueue_owner,
    load_config,
    name_of,
    namespace_of,
    split_meta_namespace_key,
    uid_of,
)
from pilothouse.errors import AlreadyExists, NotFound

FOOS = GroupVersionResource("samplecontroller.k8s.io", "v1alpha1", "foos")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")
DEFINITIONS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")

_SPEC = {"deploymentName": {"type": "string"}, "replicas": {"type": "integer", "minimum": 1, "maximum": 10}}
_STATUS = {"availableReplicas": {"type": "integer"}}
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": _SPEC},
        "status": {"type": "object", "properties": _STATUS},
    },
}
DEFINITION: Json = {
    "metadata": {
        "name": str(FOOS.group_resource),
        "annotations": {"api-approved.kubernetes.io": "unapproved, experimental-only"},
    },
    "spec": {
        "group": FOOS.group,
        "scope": "Namespaced",
        "names": {"kind": "Foo", "plural": FOOS.resource},
        "versions": [
            {
                "name": FOOS.version,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": _SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}


class ResourceExists(Exception):
    """The Deployment that a Foo names is somebody else's."""


class FooController:
    def __init__(self, client: Client, factory: SharedInformerFactory, recorder: EventRecorder) -> None:
        self._client = client
        self._recorder = recorder
        self._foos, self._deployments = factory.lister(FOOS), factory.lister(DEPLOYMENTS)
        caches = (factory.for_resource(FOOS), factory.for_resource(DEPLOYMENTS))
        self.controller = Controller("sample-controller", self.sync, caches=caches, workers=2)
        caches[0].add_event_handler(enqueue_keys(self.controller.queue))
        caches[1].add_event_handler(enqueue_owner(self.controller.queue, "Foo"))

    async def sync(self, key: str) -> None:
        """Raises whatever should make it try again."""
        who = split_meta_namespace_key(key)
        try:
            foo = self._foos.namespace(who.namespace).get(who.name)
        except NotFound:
            return  # its Deployment goes with it, since it is the owner
        if not foo.get("spec", {}).get("deploymentName"):
            logging.warning("%s: deployment name must be specified", key)
            return
        deployment = await self._sized(foo, await self._owned(foo))
        await self._show(foo, deployment)
        self._recorder.event(foo, NORMAL, "Synced", "Foo synced successfully")

    async def _owned(self, foo: Json) -> Json:
        """The Foo's Deployment, made if need be. Raises ResourceExists."""
        namespace, name = namespace_of(foo), foo["spec"]["deploymentName"]
        try:
            deployment = self._deployments.namespace(namespace).get(name)
        except NotFound:
            return await self._client.for_resource(DEPLOYMENTS, namespace=namespace).create(new_deployment(foo))
        if not is_controlled_by(deployment, foo):
            message = f'Resource "{name}" already exists and is not managed by Foo'
            self._recorder.event(foo, WARNING, "ErrResourceExists", message)
            raise ResourceExists(message)
        return deployment

    async def _sized(self, foo: Json, deployment: Json) -> Json:
        wanted = foo["spec"].get("replicas")
        if wanted is None or wanted == deployment["spec"]["replicas"]:
            return deployment
        resized = {**deployment, "spec": {**deployment["spec"], "replicas": wanted}}
        return await self._client.for_resource(DEPLOYMENTS, namespace=namespace_of(foo)).update(resized)

    async def _show(self, foo: Json, deployment: Json) -> None:
        """What the cache has is shared and stays as it is: the status goes into a copy."""
        status = {"availableReplicas": deployment.get("status", {}).get("availableReplicas", 0)}
        if foo.get("status") != status:
            foos = self._client.for_resource(FOOS, namespace=namespace_of(foo))
            await foos.update({**foo, "status": status}, subresource="status")


def new_deployment(foo: Json) -> Json:
    labels = {"app": "nginx", "controller": name_of(foo)}
    owner = {"apiVersion": str(FOOS.group_version), "kind": "Foo", "name": name_of(foo), "uid": uid_of(foo)}
    return {
        "metadata": {
            "name": foo["spec"]["deploymentName"],
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {
            "replicas": foo["spec"].get("replicas"),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]},
            },
        },
    }


def is_controlled_by(obj: Json, owner: Json) -> bool:
    """By this very object, not by one of the same name that was there before it."""
    references = obj["metadata"].get("ownerReferences") or ()
    return any(each.get("controller") and each["uid"] == uid_of(owner) for each in references)


async def main() -> None:
    async with connect(load_config()) as client:
        with contextlib.suppress(AlreadyExists):
            await client.for_resource(DEFINITIONS).create(DEFINITION)
        factory = SharedInformerFactory(client)
        recorder = EventRecorder(client, EventSource("sample-controller"))
        foos = FooController(client, factory, recorder)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, foos.controller.stop)
        async with factory, asyncio.TaskGroup() as tasks:
            recording = tasks.create_task(recorder.run())
            await foos.controller.run()
            await recorder.flush()
            recording.cancel()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main())
