"""Keeps copies of ConfigMaps in other namespaces: annotate one with `example.com/mirror-to: team-a,team-b`.

python examples/configmap_mirror.py        # finds the server through the kubeconfig or the pod it runs in
"""

import asyncio
import logging
import signal
from contextlib import suppress

from pilothouse.client import (
    Controller,
    GroupVersionResource,
    Json,
    SharedInformerFactory,
    annotations_of,
    connect,
    enqueue_mapped,
    load_config,
    meta_namespace_key,
    namespace_of,
    split_meta_namespace_key,
)
from pilothouse.errors import AlreadyExists, Conflict, NotFound, TryAgain

CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
TO, OF = "example.com/mirror-to", "example.com/mirror-of"


def source_of(obj: Json) -> list[str]:
    """A copy stands for its source, anything else for itself: so each source and its copies have one key."""
    return [annotations_of(obj).get(OF) or meta_namespace_key(obj)]


async def main() -> None:
    client = connect(load_config())
    factory = SharedInformerFactory(client)
    informer = factory.for_resource(CONFIG_MAPS)
    informer.add_indexers({"source": source_of})

    async def reconcile(key: str) -> None:
        source, name = informer.indexer.get_by_key(key) or {}, split_meta_namespace_key(key).name
        wanted = set(annotations_of(source).get(TO, "").split(",")) - {""}
        known = informer.indexer.by_index("source", key)
        copies = {namespace_of(obj): obj for obj in known if OF in annotations_of(obj)}
        for namespace in copies.keys() - wanted:
            with suppress(NotFound):
                await client.for_resource(CONFIG_MAPS, namespace=namespace).delete(name)
        for namespace in wanted:
            maps, copy = client.for_resource(CONFIG_MAPS, namespace=namespace), copies.get(namespace)
            if copy is None and informer.indexer.get_by_key(f"{namespace}/{name}"):
                raise ValueError(f"ConfigMap {namespace}/{name} is not a copy of {key}")
            try:
                if copy is None:
                    meta = {"name": name, "annotations": {OF: key}}
                    await maps.create({"metadata": meta, "data": source.get("data")})
                elif copy.get("data") != source.get("data"):
                    await maps.update({**copy, "data": source.get("data")})
            except (AlreadyExists, Conflict) as error:
                raise TryAgain("the cache is behind the server") from error

    controller = Controller("configmap-mirror", reconcile, caches=(informer,), workers=4)
    informer.add_event_handler(enqueue_mapped(controller.queue, source_of))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, controller.stop)
    async with client, factory:
        await controller.run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main())
