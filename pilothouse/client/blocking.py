"""The client for scripts: the same calls, blocking. Its event loop runs in a background thread.

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
    """May be used from several threads. Close it, or use it as a context manager.

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
        """What sends the requests, to be used in the background loop only."""
        return self._client.transport

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of the async client in the background loop and waits for its result."""
        future = self.submit(coroutine)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Starts a coroutine of the async client in the background loop; its result is to be waited for."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def iterate(self, iterator: AsyncIterator[T]) -> Iterator[T]:
        """Return an iterator that waits for each item of an asynchronous one."""
        while True:
            try:
                item = self.run(_next(iterator))
            except StopAsyncIteration:
                return
            yield item

    def resource(self, api_version: str, plural: str, *, namespace: str = "") -> BlockingResource:
        """Return the client of one resource, as `v1` and `pods`, in a namespace or in all."""
        return BlockingResource(self, self._client.resource(api_version, plural, namespace=namespace))

    def find(self, name: str, *, namespace: str = "") -> BlockingResource:
        """Return a resource by any name the server knows: `find("deploy")`. Raises NoMatch."""
        mapping: RESTMapping = self.run(self._mapper.mapping_for(name))
        scope = namespace if mapping.namespaced else ""
        return BlockingResource(self, self._client.for_resource(mapping.resource, namespace=scope))

    def for_object(self, obj: Json) -> BlockingResource:
        """Return the resource of the object's kind, in its namespace; `default` where it has none. Raises NoMatch."""
        kind = GroupVersion.parse(obj["apiVersion"]).kind(obj["kind"])
        mapping: RESTMapping = self.run(self._mapper.mapping(kind.group_kind, kind.version))
        scope = (namespace_of(obj) or "default") if mapping.namespaced else ""
        return BlockingResource(self, self._client.for_resource(mapping.resource, namespace=scope))

    def get_json(self, path: str) -> Json:
        """Return the parsed answer to a GET of this path. Raises StatusError."""
        return self.run(self._client.get_json(path))

    def close(self) -> None:
        """Close the connections. Nothing can be asked afterwards."""
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
    """ResourceClient's verbs, blocking.

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
        """As ResourceClient.get: return the object. Raises NotFound, StatusError."""
        return self._client.run(self._resource.get(name, subresource=subresource))

    def list(self, options: ListOptions = ALL) -> Json:
        """As ResourceClient.list: return one list. Raises StatusError."""
        return self._client.run(self._resource.list(options))

    def items(self, options: ListOptions = ALL) -> Iterator[Json]:
        """Every object of the collection, page by page."""
        for page in self._client.iterate(self._resource.pages(options)):
            yield from page["items"]

    @contextmanager
    def watch(self, options: ListOptions = ALL) -> Iterator[Iterator[WatchEvent]]:
        """`with resource.watch() as events: for event in events: ...`"""
        events = self._client.run(self._resource.watch(options))
        try:
            yield self._client.iterate(events)
        finally:
            self._client.run(events.aclose())

    def create(self, obj: Json, options: WriteOptions = WRITE) -> Json:
        """As ResourceClient.create: return the object as it was created. Raises StatusError."""
        return self._client.run(self._resource.create(obj, options))

    def update(self, obj: Json, options: WriteOptions = WRITE, *, subresource: str = "") -> Json:
        """As ResourceClient.update: return the object as it was written. Raises Conflict, StatusError."""
        return self._client.run(self._resource.update(obj, options, subresource=subresource))

    def patch(self, name: str, patch: Any, type_: PatchType = PatchType.MERGE, *, subresource: str = "") -> Json:
        """As ResourceClient.patch: return the object after the patch. Raises StatusError."""
        return self._client.run(self._resource.patch(name, patch, type_, subresource=subresource))

    def apply(self, obj: Json, *, field_manager: str, force: bool = False) -> Json:
        """As ResourceClient.apply: return the object after a server-side apply. Raises StatusError."""
        return self._client.run(self._resource.apply(obj, field_manager=field_manager, force=force))

    def delete(self, name: str, options: DeleteOptions = DELETE) -> Json:
        """As ResourceClient.delete: return the object, or a Status. Raises StatusError."""
        return self._client.run(self._resource.delete(name, options))

    def delete_collection(self, options: DeleteOptions = DELETE, selection: ListOptions = ALL) -> Json:
        """As ResourceClient.delete_collection: delete what is selected. Raises StatusError."""
        return self._client.run(self._resource.delete_collection(options, selection))


async def _connected(config: ClientConfig) -> Client:
    return connect(config)


async def _next(iterator: AsyncIterator[T]) -> T:
    return await anext(iterator)
