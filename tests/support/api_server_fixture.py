"""A small API server for tests: one namespaced resource over real HTTP, with the faults a test asks for.

It speaks list (paged), watch (bookmarks, sendInitialEvents), create, update, merge patch and delete, with one
resourceVersion for everything, and keeps its history until a test compacts it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from pilothouse.machinery.objects import Json


@dataclass
class Change:
    version: int
    type: str
    obj: Json


@dataclass
class Faults:
    """What goes wrong: statuses that the next requests get, and how watches behave."""

    next: list[tuple[Callable[[web.Request], bool], int, Json, dict[str, str]]] = field(default_factory=list)
    stream: bool = True
    max_page: int = 0

    def fail(
        self, status: int, *, reason: str = "", when: Callable[[web.Request], bool] = lambda _: True, **headers: str
    ) -> None:
        body = {
            "kind": "Status",
            "status": "Failure",
            "code": status,
            "reason": reason,
            "message": f"injected {status}",
        }
        self.next.append((when, status, body, {name.replace("_", "-"): value for name, value in headers.items()}))

    def take(self, request: web.Request) -> web.Response | None:
        for fault in self.next:
            when, status, body, headers = fault
            if when(request):
                self.next.remove(fault)
                return web.json_response(body, status=status, headers=headers)
        return None


def is_watch(request: web.Request) -> bool:
    return request.query.get("watch") == "true"


def is_list(request: web.Request) -> bool:
    return request.method == "GET" and not is_watch(request) and "name" not in request.match_info


class ApiServer:
    def __init__(self, root: str = "/api/v1", plural: str = "configmaps", kind: str = "ConfigMap") -> None:
        self._root = root
        self._plural = plural
        self._kind = kind
        self.version = 10
        self.compacted = 0
        self.objects: dict[str, Json] = {}
        self.history: list[Change] = []
        self.faults = Faults()
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []
        self.watching: list[web.StreamResponse] = []
        self._changed = asyncio.Condition()
        self._quiet = asyncio.Condition()
        self.url = ""
        self._port = 0

    # What a test does to the state

    async def put(self, name: str, namespace: str = "default", **fields: Any) -> Json:
        key = f"{namespace}/{name}"
        self.version += 1
        meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(self.version)}
        meta |= fields.pop("metadata", {})
        obj = {"kind": self._kind, "apiVersion": self._root.split("/", 2)[2], "metadata": meta, **fields}
        await self._record("MODIFIED" if key in self.objects else "ADDED", key, obj)
        return obj

    async def remove(self, name: str, namespace: str = "default") -> Json:
        key = f"{namespace}/{name}"
        self.version += 1
        gone = self.objects[key]
        obj = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
        await self._record("DELETED", key, obj)
        return obj

    def compact(self) -> None:
        """Forgets the history: a watch from before now is answered with 410."""
        self.compacted = self.version
        self.history.clear()

    async def bookmark(self) -> None:
        for response in [*self.watching]:
            await self._line(response, "BOOKMARK", _bookmark(self.version))

    async def send_raw(self, data: bytes) -> None:
        for response in [*self.watching]:
            await response.write(data)

    async def error_event(self, code: int, reason: str) -> None:
        status = {"kind": "Status", "code": code, "reason": reason, "message": "injected"}
        for response in [*self.watching]:
            await self._line(response, "ERROR", status)

    def cut(self) -> None:
        """Breaks every watch off in the middle of what it is doing."""
        for response in self.watching:
            transport = response._req.transport if response._req is not None else None
            if transport is not None:
                transport.abort()

    async def wait_for_requests(self, count: int, *, matching: str = "") -> None:
        async with self._quiet:
            await self._quiet.wait_for(lambda: self.count(matching) >= count)

    async def wait_for_watches(self, count: int = 1) -> None:
        async with self._quiet:
            await self._quiet.wait_for(lambda: len(self.watching) >= count)

    def count(self, matching: str) -> int:
        return sum(matching in f"{method} {path} {json.dumps(query)}" for method, path, query in self.requests)

    async def _record(self, type_: str, key: str, obj: Json) -> None:
        if type_ == "DELETED":
            del self.objects[key]
        else:
            self.objects[key] = obj
        async with self._changed:
            self.history.append(Change(self.version, type_, obj))
            self._changed.notify_all()

    # HTTP

    @asynccontextmanager
    async def run(self, **site: Any) -> AsyncIterator[ApiServer]:
        await self.start(**site)
        try:
            yield self
        finally:
            await self.stop()

    async def start(self, **site: Any) -> None:
        """Listens: where it did before, if it was stopped."""
        app = web.Application(middlewares=[self._middleware])
        collection = f"{self._root}/namespaces/{{namespace}}/{self._plural}"
        app.router.add_get(f"{self._root}/{self._plural}", self._collection)
        app.router.add_get(collection, self._collection)
        app.router.add_post(collection, self._create)
        app.router.add_delete(collection, self._delete_collection)
        for path in (collection + "/{name}", collection + "/{name}/{subresource}"):
            app.router.add_get(path, self._get)
            app.router.add_put(path, self._update)
            app.router.add_patch(path, self._patch)
            app.router.add_delete(path, self._delete)
            app.router.add_post(path, self._echo)
        runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self._port, **site).start()
        self._port = runner.addresses[0][1]
        self._runner = runner
        self.url = f"{'https' if site.get('ssl_context') else 'http'}://127.0.0.1:{self._port}"

    async def stop(self) -> None:
        self.cut()
        await self._runner.cleanup()

    @web.middleware
    async def _middleware(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.requests.append((request.method, request.path, dict(request.query)))
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        async with self._quiet:
            self._quiet.notify_all()
        fault = self.faults.take(request)
        answer: web.StreamResponse = fault if fault is not None else await handler(request)
        return answer

    async def _collection(self, request: web.Request) -> web.StreamResponse:
        return await self._watch(request) if is_watch(request) else self._list(request)

    def _selected(self, request: web.Request) -> list[Json]:
        namespace = request.match_info.get("namespace")
        objects = (self.objects[key] for key in sorted(self.objects))
        return [obj for obj in objects if namespace in (None, obj["metadata"]["namespace"])]

    def _list(self, request: web.Request) -> web.Response:
        wanted = request.query.get("resourceVersion", "")
        if wanted not in ("", "0") and int(wanted) > self.version:
            return _failure(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge"}])
        token = request.query.get("continue", "")
        if token and int(token.split(":")[0]) < self.compacted:
            return _failure(410, "Expired")
        items = [obj for obj in self._selected(request) if _key(obj) > token.partition(":")[2]]
        version = token.split(":")[0] if token else str(self.version)
        limit = min(filter(None, (int(request.query.get("limit", 0)), self.faults.max_page)), default=0)
        meta = {"resourceVersion": version}
        if limit and len(items) > limit:
            meta["continue"] = f"{version}:{_key(items[limit - 1])}"
            items = items[:limit]
        bare = [{name: value for name, value in obj.items() if name not in ("kind", "apiVersion")} for obj in items]
        return web.json_response({"kind": f"{self._kind}List", "apiVersion": "v1", "metadata": meta, "items": bare})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        wanted = request.query.get("resourceVersion", "")
        streaming = request.query.get("sendInitialEvents") == "true"
        if streaming and not self.faults.stream:
            return _failure(422, "Invalid")
        after = self.version if streaming or wanted in ("", "0") else int(wanted)
        if after < self.compacted:
            return _failure(410, "Expired")
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        try:
            if streaming:
                await self._initial(request, response)
            await self._follow(request, response, after)
        except ConnectionError:
            pass
        finally:
            if response in self.watching:
                self.watching.remove(response)
        return response

    async def _initial(self, request: web.Request, response: web.StreamResponse) -> None:
        version = self.version
        for obj in self._selected(request):
            await self._line(response, "ADDED", obj)
        await self._line(response, "BOOKMARK", _bookmark(version, **{"k8s.io/initial-events-end": "true"}))

    async def _follow(self, request: web.Request, response: web.StreamResponse, after: int) -> None:
        namespace = request.match_info.get("namespace")
        async with self._quiet:
            self.watching.append(response)
            self._quiet.notify_all()
        while True:
            for change in [change for change in self.history if change.version > after]:
                if namespace in (None, change.obj["metadata"]["namespace"]):
                    await self._line(response, change.type, change.obj)
                after = change.version
            async with self._changed:
                await self._changed.wait_for(lambda: any(change.version > after for change in self.history))  # noqa: B023

    async def _line(self, response: web.StreamResponse, type_: str, obj: Json) -> None:
        await response.write(json.dumps({"type": type_, "object": obj}).encode() + b"\n")

    async def _get(self, request: web.Request) -> web.Response:
        obj = self.objects.get(_path_key(request))
        return _failure(404, "NotFound") if obj is None else web.json_response(obj)

    async def _create(self, request: web.Request) -> web.Response:
        obj = await request.json()
        name = obj["metadata"]["name"]
        if f"{request.match_info['namespace']}/{name}" in self.objects:
            return _failure(409, "AlreadyExists")
        return web.json_response(await self._store(request, name, obj), status=201)

    async def _update(self, request: web.Request) -> web.Response:
        obj = await request.json()
        known = self.objects.get(_path_key(request))
        if known is None:
            return _failure(404, "NotFound")
        version = obj["metadata"].get("resourceVersion")
        if version and version != known["metadata"]["resourceVersion"]:
            return _failure(409, "Conflict")
        return web.json_response(await self._store(request, request.match_info["name"], obj))

    async def _patch(self, request: web.Request) -> web.Response:
        patch = await request.json()
        known = self.objects.get(_path_key(request))
        if "merge-patch" in request.content_type and "subresource" not in request.match_info:
            if known is None:
                return _failure(404, "NotFound")
            return web.json_response(await self._store(request, request.match_info["name"], {**known, **patch}))
        return await self._echo(request)

    async def _delete(self, request: web.Request) -> web.Response:
        if _path_key(request) not in self.objects:
            return _failure(404, "NotFound")
        return web.json_response(await self.remove(request.match_info["name"], request.match_info["namespace"]))

    async def _delete_collection(self, request: web.Request) -> web.Response:
        for obj in self._selected(request):
            await self.remove(obj["metadata"]["name"], obj["metadata"]["namespace"])
        return web.json_response({"kind": "Status", "status": "Success"})

    async def _echo(self, request: web.Request) -> web.Response:
        """Says what it was sent, for requests whose meaning is the server's business."""
        sent = {"contentType": request.content_type, "query": dict(request.query), "path": request.path}
        return web.json_response({**sent, "body": await request.json()})

    async def _store(self, request: web.Request, name: str, obj: Json) -> Json:
        ignored = ("kind", "apiVersion", "metadata")
        fields = {key: value for key, value in obj.items() if key not in ignored}
        meta = {key: obj["metadata"][key] for key in ("labels", "annotations") if key in obj["metadata"]}
        return await self.put(name, request.match_info["namespace"], metadata=meta, **fields)


def _key(obj: Json) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _path_key(request: web.Request) -> str:
    return f"{request.match_info['namespace']}/{request.match_info['name']}"


def _bookmark(version: int, **annotations: str) -> Json:
    meta = {"resourceVersion": str(version), **({"annotations": annotations} if annotations else {})}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta}


def _failure(status: int, reason: str, **details: Any) -> web.Response:
    body = {
        "kind": "Status",
        "status": "Failure",
        "code": status,
        "reason": reason,
        "message": reason,
        "details": details,
    }
    return web.json_response(body, status=status)
