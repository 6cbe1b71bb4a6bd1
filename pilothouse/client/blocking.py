"""Blocking client for scripts. Its event loop runs in a background thread.

with BlockingClient(load_config()) as client:
    for pod in client.resource("v1", "pods", namespace="default").list()["items"]: ...
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from pilothouse.client.config.model import ClientConfig
from pilothouse.client.discovery import DiscoveryClient
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.options import DeleteOptions, ListOptions, PatchType, WriteOptions
from pilothouse.client.rest.resource import ALL, DELETE, WRITE, ResourceClient
from pilothouse.client.rest.transport import Transport
from pilothouse.client.rest.watch import WatchEvent
from pilothouse.client.rest_mapper import RESTMapper, RESTMapping
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, namespace_of

T = TypeVar("T")


class BlockingClient:
    """Thread-safe blocking client. Use as a context manager, or call `close`.

    >>> import asyncio
    >>> from pilothouse.client import BlockingClient
    >>> def names() -> list[str]:
    ...     with BlockingClient(api.config()) as blocking:
    ...         return [item["metadata"]["name"] for item in blocking.find("ns").items()]
    >>> (await asyncio.to_thread(names))[0]
    'default'
    """

    def __init__(self, config: ClientConfig) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pilothouse-client", daemon=True)
        self._thread.start()
        self._client: Client = self.run(_connected(config))
        self._mapper = RESTMapper(DiscoveryClient(self._client))

    @property
    def transport(self) -> Transport:
        """Transport of the async client, for use in the background loop only."""
        return self._client.transport

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the background loop and return its result."""
        future = self.submit(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the background loop; return its future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def iterate(self, iterator: AsyncIterator[T]) -> Iterator[T]:
        """Iterate over an asynchronous iterator, blocking for each item."""
        while True:
            try:
                item = self.run(_next(iterator))
            except StopAsyncIteration:
                return
            yield item

    def resource(self, api_version: str, plural: str, *, namespace: str = "") -> BlockingResource:
        """Return the client of a resource, such as `v1` and `pods`, in one namespace or in all."""
        return BlockingResource(self, self._client.resource(api_version, plural, namespace=namespace))

    def find(self, name: str, *, namespace: str = "") -> BlockingResource:
        """Return a resource by plural, singular or short name: `find("deploy")`. Raises NoMatch."""
        mapping: RESTMapping = self.run(self._mapper.mapping_for(name))
        scope = namespace if mapping.namespaced else ""
        return BlockingResource(self, self._client.for_resource(mapping.resource, namespace=scope))

    def for_object(self, obj: Json) -> BlockingResource:
        """Return the resource of the object's kind in its namespace (default `default`). Raises NoMatch."""
        kind = GroupVersion.parse(obj["apiVersion"]).kind(obj["kind"])
        mapping: RESTMapping = self.run(self._mapper.mapping(kind.group_kind, kind.version))
        scope = (namespace_of(obj) or "default") if mapping.namespaced else ""
        return BlockingResource(self, self._client.for_resource(mapping.resource, namespace=scope))

    def get_json(self, path: str) -> Json:
        """Send a GET and return the JSON body. Raises StatusError."""
        return self.run(self._client.get_json(path))

    def close(self) -> None:
        """Close all connections. The client must not be used afterwards."""
        if self._loop.is_closed():
            return
        self.run(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class BlockingResource:
    """Blocking variants of ResourceClient's verbs.

    >>> import asyncio
    >>> from pilothouse.client import BlockingClient
    >>> def phase() -> str:
    ...     with BlockingClient(api.config()) as blocking:
    ...         return blocking.resource("v1", "namespaces").get("default")["status"]["phase"]
    >>> await asyncio.to_thread(phase)
    'Active'
    """

    def __init__(self, client: BlockingClient, resource: ResourceClient) -> None:
        self._client = client
        self._resource = resource

    def get(self, name: str, *, subresource: str = "") -> Json:
        """Return the object. See ResourceClient.get. Raises NotFound, StatusError."""
        return self._client.run(self._resource.get(name, subresource=subresource))

    def list(self, options: ListOptions = ALL) -> Json:
        """Return one page. See ResourceClient.list. Raises StatusError."""
        return self._client.run(self._resource.list(options))

    def items(self, options: ListOptions = ALL) -> Iterator[Json]:
        """Yield every object of the collection, page by page."""
        for page in self._client.iterate(self._resource.pages(options)):
            yield from page["items"]

    @contextmanager
    def watch(self, options: ListOptions = ALL) -> Iterator[Iterator[WatchEvent]]:
        """Watch the collection: `with resource.watch() as events: for event in events: ...`."""
        events = self._client.run(self._resource.watch(options))
        try:
            yield self._client.iterate(events)
        finally:
            self._client.run(events.aclose())

    def create(self, obj: Json, options: WriteOptions = WRITE) -> Json:
        """Create the object; return the created object. See ResourceClient.create. Raises StatusError."""
        return self._client.run(self._resource.create(obj, options))

    def update(self, obj: Json, options: WriteOptions = WRITE, *, subresource: str = "") -> Json:
        """Replace the object; return the stored object. See ResourceClient.update. Raises Conflict, StatusError."""
        return self._client.run(self._resource.update(obj, options, subresource=subresource))

    def patch(self, name: str, patch: Any, type_: PatchType = PatchType.MERGE, *, subresource: str = "") -> Json:
        """Patch the object; return the patched object. See ResourceClient.patch. Raises StatusError."""
        return self._client.run(self._resource.patch(name, patch, type_, subresource=subresource))

    def apply(self, obj: Json, *, field_manager: str, force: bool = False) -> Json:
        """Apply the object (server-side apply). See ResourceClient.apply. Raises StatusError."""
        return self._client.run(self._resource.apply(obj, field_manager=field_manager, force=force))

    def delete(self, name: str, options: DeleteOptions = DELETE) -> Json:
        """Delete the object; return the deleted object or a Status. See ResourceClient.delete. Raises StatusError."""
        return self._client.run(self._resource.delete(name, options))

    def delete_collection(self, options: DeleteOptions = DELETE, selection: ListOptions = ALL) -> Json:
        """Delete the selected objects. See ResourceClient.delete_collection. Raises StatusError."""
        return self._client.run(self._resource.delete_collection(options, selection))


async def _connected(config: ClientConfig) -> Client:
    return connect(config)


async def _next(iterator: AsyncIterator[T]) -> T:
    return await anext(iterator)
