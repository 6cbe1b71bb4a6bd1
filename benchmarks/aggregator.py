"""The time that the aggregator adds to a small GET, to a stream, and to /apis with many APIServices, half of them dead.

    python benchmarks/aggregator.py [--http2]

Runs a server and an extension API server of its own, each in its own process, both over TLS; with --http2 the latter
offers HTTP/2.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.server import ListenEndpoint, Server

GROUP = "bench.example.com"
SERVICE = "bench.default.svc"
ROUNDS = 2000
STREAM = 1 << 30
API_SERVICES = 200

_CHUNK = bytes(256 << 10)
_SMALL = json.dumps(
    {"kind": "Thing", "apiVersion": f"{GROUP}/v1", "metadata": {"name": "a"}, "data": "x" * 900}
).encode()
_DISCOVERY = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1", "resources": []}


async def answer(request: Request) -> Response:
    headers = [(b"content-type", b"application/json")]
    if request.path.endswith("/big"):
        return Response(200, _stream(), [*headers, (b"content-length", b"%d" % STREAM)])
    if request.path.endswith("/small"):
        return Response(200, _SMALL, headers)
    return Response(200, json.dumps(_DISCOVERY).encode(), headers)


async def _stream() -> AsyncIterator[bytes]:
    for _ in range(STREAM // len(_CHUNK)):
        yield _CHUNK


async def serve_backend(folder: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    if "--http2" in sys.argv:
        context.set_alpn_protocols(["h2", "http/1.1"])
    server = Server(answer, [ListenEndpoint("127.0.0.1", 0, tls=lambda _: context)])
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()


def make_certificates(folder: Path) -> str:
    from pilothouse.controlplane.certificates.ensure import ServingNames
    from pilothouse.controlplane.certificates.issue import Profile
    from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate

    ca = keep_authority("bench", folder / "ca.crt", folder / "ca.key")
    profile = Profile("extension-server", names=ServingNames(frozenset({SERVICE}), frozenset()))
    keep_certificate(profile, ca, folder / "server.crt", folder / "server.key")
    return base64.b64encode((folder / "ca.crt").read_bytes()).decode()


@dataclass
class Client:
    """One connection, as simple as can be: what is measured is on the other side."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, port: int, *, pki: Path | None = None) -> Client:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if pki is not None:
            context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        return cls(*await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=1 << 20))

    async def request(self, method: str, path: str, body: Any = None) -> bytes:
        self._send(method, path, body)
        head, length = await self._head()
        whole = await self.reader.readexactly(length)
        assert head.split(b" ")[1][:1] == b"2", head + whole
        return whole

    async def drain(self, path: str) -> int:
        self._send("GET", path, None)
        _, length = await self._head()
        left = length
        while left:
            left -= len(await self.reader.read(1 << 20))
        return length

    def _send(self, method: str, path: str, body: Any) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        fields = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
        self.writer.write(f"{method} {path} HTTP/1.1\r\n{fields}\r\n\r\n".encode() + data)

    async def _head(self) -> tuple[bytes, int]:
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        return head, int(fields.get(b"content-length", b"0"))


@dataclass(frozen=True, slots=True)
class Place:
    """A server that runs. `pki`: where it keeps the certificates of its clients."""

    port: int
    pid: int
    pki: Path | None = None

    async def client(self) -> Client:
        return await Client.open(self.port, pki=self.pki)


async def register(client: Client, ca: str, port: int) -> None:
    await _create(client, "/api/v1/namespaces/default/services", _service("bench"))
    await _create_api_service(client, f"v1.{GROUP}", _spec(GROUP, "bench", port) | {"caBundle": ca})
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}"
    for _ in range(200):
        await asyncio.sleep(0.05)
        if _available(json.loads(await client.request("GET", path))):
            return await asyncio.sleep(0.2)
    raise SystemExit("the extension server did not become available")


def _service(name: str) -> Any:
    return {"metadata": {"name": name}, "spec": {"type": "ExternalName", "externalName": "localhost"}}


def _spec(group: str, service: str, port: int) -> dict[str, Any]:
    place = {"namespace": "default", "name": service, "port": port}
    return {"group": group, "version": "v1", "service": place, "groupPriorityMinimum": 100, "versionPriority": 10}


def _available(api_service: Any) -> bool:
    conditions = api_service.get("status", {}).get("conditions") or [{}]
    return bool(conditions[0].get("status") == "True")


async def _create(client: Client, path: str, obj: Any) -> None:
    await client.request("POST", path, obj)


async def _create_api_service(client: Client, name: str, spec: Any) -> None:
    obj = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": spec}
    await _create(client, "/apis/apiregistration.k8s.io/v1/apiservices", obj)


@dataclass(frozen=True, slots=True)
class Cost:
    """`cpu` is what the process on the other side used: it does not change with what else the machine does."""

    median: float
    wall: float
    cpu: float


async def small_gets(client: Client, path: str, pid: int, rounds: int = ROUNDS) -> Cost:
    times = []
    used = _processor_seconds(pid)
    for _ in range(rounds):
        start = time.perf_counter()
        await client.request("GET", path)
        times.append(time.perf_counter() - start)
    return Cost(statistics.median(times) * 1000, sum(times), (_processor_seconds(pid) - used) / rounds * 1000)


async def drained(client: Client, path: str, pid: int) -> Cost:
    start, used = time.perf_counter(), _processor_seconds(pid)
    await client.drain(path)
    wall = time.perf_counter() - start
    return Cost(wall, wall, _processor_seconds(pid) - used)


def _processor_seconds(pid: int) -> float:
    """Of all threads, in kernel and in user mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(through_server: Place, through_backend: Place, ca: str) -> None:
    server, backend = through_server.pid, through_backend.pid
    through, direct = await through_server.client(), await through_backend.client()
    await register(through, ca, through_backend.port)
    await measure_small(through, direct, server, backend)
    big = f"/apis/{GROUP}/v1/big"
    for name, client, pid in (("direct", direct, backend), ("aggregated", await through_server.client(), server)):
        cost = await drained(client, big, pid)
        print(f"stream of 1 GiB, {name}: {STREAM / cost.wall / 1e6:.0f} MB/s, {cost.cpu:.2f} s of CPU")
    await measure_apis(through, through_backend.port)


async def measure_small(through: Client, direct: Client, server: int, backend: int) -> None:
    small, local = f"/apis/{GROUP}/v1/small", "/api/v1/namespaces/default/services/bench"
    await small_gets(through, small, server, 200)
    rows = {
        "direct": await small_gets(direct, small, backend),
        "local": await small_gets(through, local, server),
        "aggregated": await small_gets(through, small, server),
    }
    for name, cost in rows.items():
        print(f"small GET, {name}: median {cost.median:.3f} ms, {cost.cpu:.3f} ms of CPU")
    print(f"adds {rows['aggregated'].median - rows['direct'].median:.3f} ms at the median")


async def measure_apis(through: Client, backend_port: int) -> None:
    for i in range(API_SERVICES):
        group, dead = f"g{i}.example.com", i % 2
        spec = _spec(group, "bench", 1 if dead else backend_port) | ({"insecureSkipTLSVerify": True})
        await _create_api_service(through, f"v1.{group}", spec)
    await asyncio.sleep(2)
    apis = await small_gets(through, "/apis", os.getpid(), 200)
    print(f"/apis with {API_SERVICES} APIServices, half of them dead, median: {apis.median:.2f} ms")


def main() -> None:
    if sys.argv[1:2] == ["--backend"]:
        run(serve_backend(Path(sys.argv[2])))
        return
    with tempfile.TemporaryDirectory() as name:
        folder, data = Path(name), Path(name) / "data"
        ca = make_certificates(folder)
        backend = start(__file__, "--backend", name, *sys.argv[1:])
        server = start("-m", "pilothouse.cli.main", "serve", "--secure-port=0", f"--data-dir={data}")
        try:
            assert backend.stdout is not None
            behind = Place(int(backend.stdout.readline()), backend.pid)
            run(measure(Place(port_of(server), server.pid, data / "pki"), behind, ca))
        finally:
            for process in (backend, server):
                process.kill()
                process.wait()


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def port_of(server: subprocess.Popen[str]) -> int:
    assert server.stdout is not None
    port = 0
    for line in server.stdout:
        if "https://" in line:
            port = int(line.rsplit(":", 1)[1])
        if line.startswith("export KUBECONFIG="):
            return port
    raise SystemExit("the server did not start")


def run(work: Coroutine[Any, Any, None]) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


if __name__ == "__main__":
    main()
