"""HTTP servers of simulated pods: one on every open port.

The behaviour of the container decides the response; by default the root and the paths of HTTP probes describe the pod,
and other paths are not found. Connections to closed ports are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from itertools import islice
from typing import Final, Protocol

from pilothouse.apiserver.offload import offload_by_size
from pilothouse.kinds.pods import node_name
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, annotations_of, items, name_of, namespace_of, text
from pilothouse.nodes.behavior.model import BEHAVIOR, ContainerBehavior
from pilothouse.nodes.kubelet.host import Host, running_containers
from pilothouse.nodes.pods.ports import is_served, listens
from pilothouse.nodes.pods.state import containers_of

_MAX_HEAD: Final = 64 * 1024
_MAX_BODY: Final = 64 * 1024 * 1024
_PLAIN: Final = "text/plain; charset=utf-8"
_BODILESS: Final = (204, 304)
_MOST_CONTAINERS: Final = 64
"""Running containers of a pod that can listen: their behaviour is parsed for each request."""
_PARSING: Final = 4
"""Cost of parsing a byte of behaviour, relative to decoding a byte of JSON."""


@dataclass(frozen=True, slots=True)
class PodAnswer:
    status: int
    body: bytes
    content_type: str = _PLAIN

    @property
    def has_body(self) -> bool:
        return self.status not in _BODILESS


@dataclass(frozen=True, slots=True)
class PodPort:
    """A port of a pod."""

    host: Host
    pod: Json
    number: int

    async def is_open(self) -> bool:
        """Return whether a running container listens on the port."""
        return await offload_by_size(self._size, next, self._listeners(), None) is not None

    async def answer(self, method: str, target: str) -> PodAnswer | None:
        """Return the response to a request for a path with query; None if the port is closed."""
        return await offload_by_size(self._size, self._answer, method, target)

    @property
    def _size(self) -> int:
        """Return the approximate bytes of annotations to parse, which decide on offloading."""
        kinds = ("containers", "initContainers", "ephemeralContainers")
        containers = min(sum(len(items(self.pod, "spec", kind)) for kind in kinds), _MOST_CONTAINERS)
        return _PARSING * containers * len(annotations_of(self.pod).get(BEHAVIOR) or "")

    def _answer(self, method: str, target: str) -> PodAnswer | None:
        path = target.partition("?")[0] or "/"
        listeners = [*self._listeners()]
        if not listeners:
            return None
        for _, behavior in listeners:
            if (answer := behavior.http_answer(self.number, path)) is not None:
                return PodAnswer(answer.status, answer.body.encode(), answer.content_type)
        if any(is_served(spec, self.number, path) for spec, _ in listeners):
            return PodAnswer(200, self._page(method, target))
        return PodAnswer(404, f"404 page not found: the simulated pod has no behavior for {method} {path}\n".encode())

    def _listeners(self) -> Iterator[tuple[Json, ContainerBehavior]]:
        """Yield specs and behaviours of the running containers that listen on the port."""
        running = running_containers(self.pod)
        considered = (container for container in containers_of(self.pod) if container.name in running)
        for container in islice(considered, _MOST_CONTAINERS):
            behavior = self.host.behavior(self.pod, container.name)
            if listens(container.spec, self.number, behavior):
                yield container.spec, behavior

    def _page(self, method: str, target: str) -> bytes:
        page = {
            "pod": f"{namespace_of(self.pod)}/{name_of(self.pod)}",
            "node": node_name(self.pod),
            "address": f"{text(self.pod, 'status', 'podIP')}:{self.number}",
            "request": f"{method} {target}",
        }
        return "".join(f"{name}: {value}\n" for name, value in page.items()).encode()


class ByteStream(Protocol):
    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...


@dataclass(slots=True)
class PodServer:
    """An HTTP/1.1 server on one connection."""

    port: PodPort
    stream: ByteStream
    received: bytes = b""

    async def run(self) -> None:
        """Serve until the client has no more requests. Raises OSError if the client disconnects."""
        while (head := await self._head()) is not None:
            first, *lines = head.decode("latin-1").split("\r\n")
            method, _, rest = first.partition(" ")
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip().lower() for name, _, value in pairs}
            goes_on = await self._drop_body(headers) and headers.get("connection") != "close"
            await self._answer(method, rest.rpartition(" ")[0], goes_on=goes_on and first.endswith("HTTP/1.1"))
            if not goes_on:
                return

    async def _head(self) -> bytes | None:
        while b"\r\n\r\n" not in self.received:
            if len(self.received) > _MAX_HEAD or not (data := await self.stream.read()):
                return None
            self.received += data
        head, _, self.received = self.received.partition(b"\r\n\r\n")
        return head

    async def _drop_body(self, headers: dict[str, str]) -> bool:
        """Skip the body; return False for bodies of unknown or excessive length."""
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal() or int(length) > _MAX_BODY:
            return False
        remaining = int(length)
        while remaining:
            data = self.received or await self.stream.read()
            if not data:
                return False
            self.received = data[remaining:]
            remaining -= min(remaining, len(data))
        return True

    async def _answer(self, method: str, path: str, *, goes_on: bool) -> None:
        answer = await self.port.answer(method, path)
        if answer is None:  # the container has ended
            raise ConnectionResetError
        lines = [f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, 'Unknown')}"]
        if answer.has_body:
            lines += [f"Content-Type: {answer.content_type}", f"Content-Length: {len(answer.body)}"]
        lines += [f"Connection: {'keep-alive' if goes_on else 'close'}", "", ""]
        body = b"" if method == "HEAD" or not answer.has_body else answer.body
        await self.stream.write("\r\n".join(lines).encode() + body)


_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
