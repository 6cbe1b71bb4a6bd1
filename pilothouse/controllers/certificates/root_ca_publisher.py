"""root-ca-certificate-publisher-controller: publishes the server's CA as a ConfigMap in every namespace."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller, enqueue_mapped
from pilothouse.controllers.context import ControllerConfig, ControllerContext, ObjectSelection, metrics_in
from pilothouse.controllers.namespace_state import is_active, is_refusal_of_terminating_namespace
from pilothouse.controllers.resources import CONFIG_MAPS, NAMESPACES
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json, annotations_of, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

NAME = "kube-root-ca.crt"
DESCRIPTION_ANNOTATION = "kubernetes.io/description"
DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the"
    " internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes"
    " clusters."
)
_PUBLISHED = ObjectSelection(field_selector=f"metadata.name={NAME}")
log = logging.getLogger(__name__)
_LOOK_EVERY: Final = 5.0


class _PublisherMetrics:
    def __init__(self, registry: CollectorRegistry) -> None:
        subsystem, help_text = "root_ca_cert_publisher", "Number of namespace syncs happened in root ca cert publisher."
        buckets = [0.001 * 2**step for step in range(15)]
        self._syncs = Counter("sync", help_text, ["code"], subsystem=subsystem, registry=registry)
        self._latency = Histogram(
            "sync_duration_seconds", help_text, ["code"], subsystem=subsystem, buckets=buckets, registry=registry
        )

    def observe(self, code: int, seconds: float) -> None:
        self._latency.labels(str(code)).observe(seconds)
        self._syncs.labels(str(code)).inc()


async def run(context: ControllerContext) -> None:
    if not context.config.root_ca:
        return
    publisher = _Publisher(context)
    await publisher.run()


class _Publisher:
    def __init__(self, context: ControllerContext) -> None:
        self._root_ca = RootCA(context.config)
        self._config_maps = context.client.for_resource(CONFIG_MAPS)
        self._informer = context.informer(CONFIG_MAPS, _PUBLISHED)
        self._namespaces = context.informer(NAMESPACES)
        self._queue = context.queue("root_ca_cert_publisher", str)
        self._metrics = metrics_in(context.registry, _PublisherMetrics)
        self._clock = context.clock

    async def run(self) -> None:
        published = enqueue_mapped(self._queue, lambda published: (namespace_of(published),))
        self._informer.add_event_handler(
            ResourceEventHandlerFuncs(update=published.on_update, delete=published.on_delete)
        )
        self._namespaces.add_event_handler(
            ResourceEventHandlerFuncs(add=self._add, update=lambda old, new: self._add(new))
        )
        caches = (self._informer, self._namespaces)
        controller = Controller(
            "root_ca_cert_publisher", self._sync, caches=caches, queue=self._queue, clock=self._clock
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._root_ca.follow(self._add_all))
            tasks.create_task(controller.run())

    @property
    def _data(self) -> Json:
        return {"ca.crt": self._root_ca.pem.decode()}

    def _add_all(self) -> None:
        for namespace in self._namespaces.indexer.list():
            self._add(namespace)

    def _add(self, namespace: Json) -> None:
        if is_active(namespace):
            self._queue.add(name_of(namespace))

    async def _sync(self, namespace: str) -> None:
        started, code = self._clock.now(), 500
        try:
            published = self._informer.indexer.get_by_key(f"{namespace}/{NAME}")
            if published is None:
                await self._create(namespace)
            elif published.get("data") != self._data or not annotations_of(published).get(DESCRIPTION_ANNOTATION):
                annotations = annotations_of(published) | {DESCRIPTION_ANNOTATION: DESCRIPTION}
                corrected = {
                    **published,
                    "metadata": metadata(published) | {"annotations": annotations},
                    "data": self._data,
                }
                await self._config_maps.namespace(namespace).update(corrected)
            code = 200
        except StatusError as error:
            code = error.code
            raise
        finally:
            self._metrics.observe(code, self._clock.now() - started)

    async def _create(self, namespace: str) -> None:
        annotations = {DESCRIPTION_ANNOTATION: DESCRIPTION}
        wanted: Json = {"metadata": {"name": NAME, "annotations": annotations}, "data": self._data}
        try:
            await self._config_maps.namespace(namespace).create(wanted)
        except NotFound:
            return
        except StatusError as error:
            if not is_refusal_of_terminating_namespace(error):
                raise


class RootCA:
    """The current CA of the server's certificate. During a rotation, namespaces and secrets need both CAs."""

    def __init__(self, config: ControllerConfig) -> None:
        self.pem = config.root_ca
        self._file = config.root_ca_file

    async def follow(self, changed: Callable[[], None], *, every: float = _LOOK_EVERY) -> None:
        """Call `changed` after each change of the file. Returns at once if the CA has no file."""
        while self._file is not None:
            await asyncio.sleep(every)
            if await asyncio.to_thread(self._reread, self._file):
                changed()

    def _reread(self, file: Path) -> bool:
        try:
            content = file.read_bytes()
        except OSError as error:
            log.error("the root CA can not be read, the old one stays: %s", error)
            return False
        if not content or content == self.pem:
            return False
        self.pem = content
        return True
