"""ResourceClient: all verbs on one resource, in one namespace or in all.

Objects are JSON; errors are StatusErrors of `pilothouse.machinery.errors`. The wire format omits kind and apiVersion of
list items; ResourceClient restores both fields.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pilothouse.client import garbage_collection
from pilothouse.client.rest.options import DeleteOptions, ListOptions, PatchType, WriteOptions
from pilothouse.client.rest.watch import RestWatch
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, name_of

if TYPE_CHECKING:
    from pilothouse.client.rest.client import Client

PAGE_SIZE = 500
JSON = "application/json"
ALL = ListOptions()
WRITE = WriteOptions()
DELETE = DeleteOptions()
_GRACE = 30.0  # seconds after its timeout before a silent watch is abandoned


class ResourceClient:
    """Verbs on one resource. Every call may raise StatusError, ConnectionFailed or InvalidResponse.

    >>> maps = client.resource("v1", "configmaps", namespace="default")
    >>> made = await maps.create({"metadata": {"name": "a"}, "data": {"k": "1"}})
    >>> changed = await maps.update({**made, "data": {"k": "2"}})
    >>> (await maps.get("a"))["data"]
    {'k': '2'}
    """

    def __init__(
        self,
        client: Client,
        resource: GroupVersionResource,
        *,
        namespace: str = "",
        metadata_only: bool = False,
    ) -> None:
        self._client = client
        self.resource = resource
        self._namespace = namespace
        self._metadata_only = metadata_only
        self._accept_one = _accept("PartialObjectMetadata") if metadata_only else JSON
        self._accept_list = _accept("PartialObjectMetadataList") if metadata_only else JSON

    def namespace(self, namespace: str) -> ResourceClient:
        """Return a client of the same resource in a namespace."""
        return ResourceClient(self._client, self.resource, namespace=namespace, metadata_only=self._metadata_only)

    def metadata_only(self) -> ResourceClient:
        """Return a client that reads objects as PartialObjectMetadata."""
        return ResourceClient(self._client, self.resource, namespace=self._namespace, metadata_only=True)

    def path(self, name: str = "", subresource: str = "") -> str:
        """Return the path of the collection, of an object, or of a subresource."""
        gv = self.resource.group_version
        root = f"/apis/{gv}" if gv.group else f"/api/{gv}"
        namespace = f"/namespaces/{quote(self._namespace, safe='')}" if self._namespace else ""
        path = f"{root}{namespace}/{self.resource.resource}"
        if name:
            path += f"/{quote(name, safe=':')}"
        return f"{path}/{subresource}" if subresource else path

    async def get(self, name: str, *, subresource: str = "", resource_version: str = "") -> Json:
        """Return an object or one of its subresources. Raises NotFound, StatusError."""
        params = {"resourceVersion": resource_version} if resource_version else None
        return await self._client.get_json(self.path(_required(name), subresource), params, accept=self._accept_one)

    async def list(self, options: ListOptions = ALL) -> Json:
        """Return one page as a List object. `metadata.continue` is the token of the next page."""
        listing = await self._client.get_json(self.path(), options.params(), accept=self._accept_list)
        kind, api_version = listing.get("kind") or "", listing.get("apiVersion")
        if kind.endswith("List") and kind != "List":
            types = {"kind": kind.removesuffix("List"), "apiVersion": api_version}
            with garbage_collection.paused(0):
                listing["items"] = [types | item for item in listing.get("items") or ()]
        return listing

    async def pages(self, options: ListOptions = ALL) -> AsyncIterator[Json]:
        """Yield pages of `options.limit` (default 500) objects. Raises Expired when the continue token has expired."""
        page = await self.list(options if options.limit else replace(options, limit=PAGE_SIZE))
        yield page
        while token := page["metadata"].get("continue"):
            page = await self.list(
                replace(
                    options,
                    limit=options.limit or PAGE_SIZE,
                    continue_=token,
                    resource_version=None,
                    resource_version_match="",
                )
            )
            yield page

    async def items(self, options: ListOptions = ALL) -> AsyncIterator[Json]:
        """Yield every object of the collection, page by page. Raises StatusError as `pages`."""
        async for page in self.pages(options):
            for obj in page["items"]:
                yield obj

    async def watch(self, options: ListOptions = ALL) -> RestWatch:
        """Open a watch. Return when the server has accepted the watch."""
        limit = None if options.timeout_seconds is None else options.timeout_seconds + _GRACE
        params = {**options.params(), "watch": "true"}
        return RestWatch(await self._client.stream(self.path(), params, accept=self._accept_one, timeout=limit))

    async def create(
        self,
        obj: Json,
        options: WriteOptions = WRITE,
        *,
        name: str = "",
        subresource: str = "",
    ) -> Json:
        """Create an object, or a subresource (binding, eviction, token) of the object `name`. Return the created
        object."""
        path = self.path(name, subresource)
        return await self._client.request("POST", path, params=options.params(), body=obj, accept=self._accept_one)

    async def update(
        self,
        obj: Json,
        options: WriteOptions = WRITE,
        *,
        subresource: str = "",
    ) -> Json:
        """Replace an object; return the stored object. Raises Conflict after a concurrent write, StatusError."""
        path = self.path(_required(name_of(obj)), subresource)
        return await self._client.request("PUT", path, params=options.params(), body=obj, accept=self._accept_one)

    async def update_status(self, obj: Json, options: WriteOptions = WRITE) -> Json:
        """Replace the status of an object; otherwise as `update`."""
        return await self.update(obj, options, subresource="status")

    async def patch(
        self,
        name: str,
        patch: Any,
        type_: PatchType = PatchType.MERGE,
        *,
        options: WriteOptions = WRITE,
        subresource: str = "",
    ) -> Json:
        """Patch an object; return the patched object. Raises StatusError."""
        path = self.path(_required(name), subresource)
        return await self._client.request(
            "PATCH",
            path,
            params=options.params(),
            body=patch,
            content_type=type_.value,
            accept=self._accept_one,
        )

    async def apply(
        self, obj: Json, *, field_manager: str, force: bool = False, subresource: str = "", dry_run: bool = False
    ) -> Json:
        """Apply an object (server-side apply). Raises Conflict if other managers own fields and `force` is not set."""
        options = WriteOptions(field_manager=field_manager, force=force, dry_run=dry_run)
        return await self.patch(name_of(obj), obj, PatchType.APPLY, options=options, subresource=subresource)

    async def delete(self, name: str, options: DeleteOptions = DELETE) -> Json:
        """Delete an object; return the deleted object or a Status."""
        return await self._client.request(
            "DELETE", self.path(_required(name)), body=options.body(), accept=self._accept_one
        )

    async def delete_collection(
        self,
        options: DeleteOptions = DELETE,
        selection: ListOptions = ALL,
    ) -> Json:
        """Delete the selected objects; return the server's response. Raises StatusError."""
        return await self._client.request(
            "DELETE", self.path(), params=selection.params(), body=options.body(), accept=self._accept_list
        )


def _accept(kind: str) -> str:
    return f"{JSON};as={kind};g=meta.k8s.io;v=v1"


def _required(name: str) -> str:
    if not name:
        raise ValueError("resource name may not be empty")
    return name
