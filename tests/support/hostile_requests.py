"""Requests that no well-behaved client makes, and a player that sends them to a server over TLS.

    answers = await play(long_paths(60), port=port, tls=context)      → how often each status code was answered

Each function makes the requests of one attack; no two of them are alike, so that nothing can be remembered.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

LONG = 1_000_000
"""As long as a request's head may be."""
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@dataclass(frozen=True, slots=True)
class HostileRequest:
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def on_the_wire(self) -> bytes:
        length = (("Content-Length", str(len(self.body))),) if self.body else ()
        fields = "".join(f"{name}: {value}\r\n" for name, value in (("Host", "x"), *self.headers, *length))
        return f"{self.method} {self.target} HTTP/1.1\r\n{fields}\r\n".encode("latin-1") + self.body


def get(target: str, *headers: tuple[str, str]) -> HostileRequest:
    return HostileRequest("GET", target, headers)


def post(target: str, obj: object) -> HostileRequest:
    return HostileRequest("POST", target, (("Content-Type", "application/json"),), json.dumps(obj).encode())


def long_paths(count: int, size: int = LONG) -> Iterator[HostileRequest]:
    for number in range(count):
        yield get(f"/{number}".ljust(size, "x"))


def paths_of_many_segments(count: int, size: int = LONG) -> Iterator[HostileRequest]:
    for number in range(count):
        start = f"/api/v1/{number}"
        yield get(start + "/ab" * ((size - len(start)) // 3))


def made_up_resources(count: int) -> Iterator[HostileRequest]:
    """As CVE-2020-8552: each would be a series of every request metric."""
    for number in range(count):
        yield get(f"/apis/group-{number}.example.com/v{number}/namespaces/default/things-{number}/name/sub-{number}")
        yield HostileRequest(f"VERB{number}", f"/apis/example.com/v1/things-{number}")


def made_up_subresources(count: int, resource: str = CONFIG_MAPS) -> Iterator[HostileRequest]:
    for number in range(count):
        yield get(f"{resource}/name/{number}".ljust(20_000, "x"))


def long_selectors(count: int, size: int = 900_000) -> Iterator[HostileRequest]:
    for number in range(count):
        kind = ("fieldSelector", "labelSelector")[number % 2]
        term = f"metadata.name!={number}," if kind == "fieldSelector" else f"l{number}!=v,"
        yield get(f"{CONFIG_MAPS}?{kind}={quote(term * (size // len(quote(term))))}metadata.name")


def long_headers(count: int, size: int = 900_000) -> Iterator[HostileRequest]:
    """What is asked for, by whom, and names that nobody knows."""
    for number in range(count):
        value = f"application/json;x={number}".ljust(size, "y")
        yield get(CONFIG_MAPS, ("Accept", value))
        yield get("/apis", ("Accept", f"application/json;x={number};" + "a=b;" * (size // 4)))
        yield get(CONFIG_MAPS, ("User-Agent", value))
        yield get(CONFIG_MAPS, ("Authorization", f"Bearer {value}"))
        yield get(CONFIG_MAPS, (f"X-{number}".ljust(size, "n"), "value"))


def long_identities(count: int, groups: int = 2_000) -> Iterator[HostileRequest]:
    """For somebody who may impersonate: users whom nobody knows, in many groups."""
    for number in range(count):
        names = (("Impersonate-Group", f"{number}-{group}".ljust(200, "g")) for group in range(groups))
        yield get(CONFIG_MAPS, ("Impersonate-User", f"{number}".ljust(100_000, "u")), *names)


def long_names_in_bodies(count: int, size: int = LONG) -> Iterator[HostileRequest]:
    """Kinds, managers, quantities, images and time zones that there cannot be."""
    for number in range(count):
        name = f"{number}".ljust(size, "x")
        pod = {"containers": [{"name": "c", "image": name, "resources": {"requests": {name: f"{number}" * 40_000}}}]}
        yield post(CONFIG_MAPS, {"apiVersion": name, "kind": name, "metadata": {"name": "x"}})
        yield post(CONFIG_MAPS, {"apiVersion": f"v{number}", "kind": "DeleteOptions", "x": name})
        yield post("/api/v1/namespaces/default/pods?dryRun=All", {"metadata": {"name": "x"}, "spec": pod})
        spec = {"schedule": "* * * * *", "timeZone": name}
        yield post("/apis/batch/v1/namespaces/default/cronjobs?dryRun=All", {"metadata": {"name": "x"}, "spec": spec})
        asked = {"resourceAttributes": {"verb": name, "resource": name}}
        yield post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": asked})


def distinct_keys(count: int) -> Iterator[HostileRequest]:
    """Short enough to be remembered, and as many and as large as memory can be made to hold of them."""
    for number in range(count):
        yield get(f"/api/v1/{number}" + "/ab" * 80)
        yield get(f"/{number}".ljust(250, "x") + f"?{number}".ljust(250, "y"))
        yield get(
            f"{CONFIG_MAPS}?labelSelector={number}" + quote(",a,b,c" * 29), ("Accept", f"{number}".ljust(500, "z"))
        )
        yield get(f"{CONFIG_MAPS}?fieldSelector={number}" + quote("=,a=,b=" * 26))


async def play(
    requests: Iterable[HostileRequest], *, port: int, tls: ssl.SSLContext, connections: int = 4
) -> Counter[int]:
    """Send all of them over some connections; return how often each status code was answered, 0 for no answer."""
    waiting, answers = iter(requests), Counter[int]()

    async def work() -> None:
        while batch := list(islice(waiting, 16)):
            await _play(batch, answers, port=port, tls=tls)

    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(work())
    return answers


async def _play(batch: list[HostileRequest], answers: Counter[int], *, port: int, tls: ssl.SSLContext) -> None:
    """One after the other; on a new connection where the server has closed the one before."""
    batch.reverse()
    while batch:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, limit=1 << 22)
        try:
            while batch:
                request = batch.pop()
                status, again = await _exchange(request, reader, writer)
                answers[status] += 1
                if not again:
                    break
        finally:
            writer.transport.abort()


async def _exchange(
    request: HostileRequest, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> tuple[int, bool]:
    """The status code, and whether the connection can be used again."""
    try:
        writer.write(request.on_the_wire())
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"transfer-encoding: chunked" in head:
            while size := int(await reader.readline(), 16):
                await reader.readexactly(size + 2)
            await reader.readline()
        elif b"content-length: " in head:
            await reader.readexactly(int(head.partition(b"content-length: ")[2].split()[0]))
        return int(head.split()[1]), b"connection: close" not in head
    except (OSError, asyncio.IncompleteReadError):
        return 0, False
