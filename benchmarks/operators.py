"""Three operators, written with pilothouse.operator and with kopf: lines, memory, throughput and latency.

    python benchmarks/operators.py [--kopf VENV] [--objects 5000] [--watched 10000] [--only mirror,rollouts]

    mirror    copies labelled ConfigMaps to another namespace, with a finalizer
    backups   a custom resource with a ConfigMap, a condition, a finalizer and a validating webhook
    rollouts  a custom resource with a Deployment each, whose progress is its status

The programs are in `operator_programs/`. VENV is a virtual environment with kopf and kubernetes
from PyPI. Server, operator and this driver are processes of their own; throughput is per second of the
operator's processor time. The programs in Go (controller-runtime) are counted, not run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import yaml

from pilothouse.client import (
    Client,
    GroupVersionResource,
    Json,
    ListOptions,
    PatchType,
    connect,
    load_kubeconfig,
    name_of,
)
from pilothouse.errors import NotFound

PROGRAMS = Path(__file__).parent / "operator_programs"
AT_ONCE = 16
MIB = 1024 * 1024
_TICKS = os.sysconf("SC_CLK_TCK")
_PAUSE = 3.0
_START = 600
_PATIENCE = 1800
CONFIG_MAPS = GroupVersionResource("", "v1", "configmaps")
BACKUPS = GroupVersionResource("demo.example.com", "v1", "backups")
ROLLOUTS = GroupVersionResource("demo.example.com", "v1", "rollouts")
DEPLOYMENTS = GroupVersionResource("apps", "v1", "deployments")


@dataclass(frozen=True)
class Workload:
    """`body` is an object with its n-th content; `is_done` tells from an object of `shown` that the content arrived."""

    source: GroupVersionResource
    shown: GroupVersionResource
    shown_in: str
    body: Callable[[str, int], Json]
    is_done: Callable[[Json, int], bool]
    reconciles: int = 1
    """Handler calls that one write leads to."""


def config_map(name: str, version: int) -> Json:
    data = {"version": str(version), "text": "x" * 1000}
    meta = {"name": name, "labels": {"mirror": "true"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def custom(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": "demo.example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


WORKLOADS = {
    "mirror": Workload(
        CONFIG_MAPS, CONFIG_MAPS, "mirror", config_map, lambda obj, n: (obj.get("data") or {}).get("version") == str(n)
    ),
    "backups": Workload(
        BACKUPS,
        CONFIG_MAPS,
        "default",
        lambda name, n: custom("Backup", name, {"keep": n % 30 + 1}),
        lambda obj, n: (obj.get("data") or {}).get("keep") == str(n % 30 + 1),
    ),
    "rollouts": Workload(
        ROLLOUTS,
        DEPLOYMENTS,
        "default",
        lambda name, n: custom("Rollout", name, {"image": f"app:{n}", "replicas": 3}),
        lambda obj, n: obj["spec"]["template"]["spec"]["containers"][0]["image"] == f"app:{n}",
        reconciles=2,
    ),
}


@dataclass(frozen=True)
class Figures:
    lines: int
    watched: float
    """Megabytes before the load; for the mirror, with `--watched` further objects."""
    busy: float
    """Megabytes after load."""
    throughput: float
    """Reconciles per second of processor time."""
    p50: float
    p99: float


@dataclass(frozen=True)
class Process:
    pid: int

    @property
    def megabytes(self) -> float:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB

    @property
    def seconds(self) -> float:
        """Processor time in user and system mode."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


def lines_of(path: Path) -> int:
    """Count lines of code: no blank lines, comments, docstrings of modules or package clauses."""
    text = path.read_text()
    if path.suffix == ".py":
        text = re.sub(r'\A""".*?"""', "", text, flags=re.DOTALL)
    mark = "//" if path.suffix == ".go" else "#"
    return sum(bool(line.strip()) and not line.strip().startswith(mark) for line in text.splitlines())


@asynccontextmanager
async def server(folder: Path) -> AsyncIterator[Path]:
    """Run a server; yield its kubeconfig."""
    flags = ["--secure-port=0", f"--data-dir={folder}", "--controllers=namespace-controller,serviceaccount-controller"]
    command = [sys.executable, "-m", "pilothouse.cli.main", "serve", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:  # noqa: ASYNC220
        assert process.stdout is not None
        while not (line := process.stdout.readline()).startswith(b"export KUBECONFIG="):
            if not line:
                raise SystemExit(f"the server did not start: {' '.join(command)}")
        try:
            yield folder / "admin.kubeconfig"
        finally:
            process.terminate()


@asynccontextmanager
async def operator(command: list[str], kubeconfig: Path, log: Path) -> AsyncIterator[Process]:
    certificate, key = log.with_name("webhook.crt"), log.with_name("webhook.key")
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        *names,
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(make, check=True, capture_output=True)  # noqa: ASYNC221
    variables = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "PYTHONPATH": str(PROGRAMS.parents[1]),
        "WEBHOOK_CERTIFICATE": str(certificate),
        "WEBHOOK_KEY": str(key),
    }
    with log.open("wb") as out, subprocess.Popen(command, env=variables, stdout=out, stderr=out) as process:  # noqa: ASYNC220
        try:
            yield Process(process.pid)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


async def together(work: Iterable[Awaitable[Any]]) -> None:
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(each: Awaitable[Any]) -> None:
        async with turn:
            await each

    await asyncio.gather(*map(one, work))


class Progress:
    """Watches the shown objects and reports when each has its content."""

    def __init__(self, client: Client, load: Workload) -> None:
        self._load = load
        self._client = client
        self._expected: dict[str, int] = {}
        self._all_done = asyncio.Event()
        self.times: dict[str, float] = {}

    def expect(self, names: Iterable[str], version: int) -> None:
        self._expected = dict.fromkeys(names, version)
        self._all_done.clear()

    async def wait(self) -> None:
        await self._all_done.wait()

    async def watch(self) -> None:
        objects = self._client.for_resource(self._load.shown, namespace=self._load.shown_in)
        since = (await objects.list(ListOptions(limit=1)))["metadata"]["resourceVersion"]
        async with await objects.watch(ListOptions(resource_version=since)) as events:
            async for event in events:
                name = name_of(event.object)
                if name in self._expected and self._load.is_done(event.object, self._expected[name]):
                    self.times[name] = perf_counter()
                    del self._expected[name]
                    if not self._expected:
                        self._all_done.set()


async def finish_rollouts(client: Client, names: Iterable[str]) -> None:
    """Report the Deployments as rolled out, and wait until the Rollouts say so."""
    deployments = client.for_resource(DEPLOYMENTS, namespace="default")
    rollouts = client.for_resource(ROLLOUTS, namespace="default")

    async def finish(name: str) -> None:
        generation = (await deployments.get(name))["metadata"]["generation"]
        status = {"status": {"observedGeneration": generation, "replicas": 3, "updatedReplicas": 3}}
        await deployments.patch(name, status, PatchType.MERGE, subresource="status")

    await together(finish(name) for name in names)
    while any((obj.get("status") or {}).get("phase") != "Complete" for obj in (await rollouts.list())["items"]):  # noqa: ASYNC110
        await asyncio.sleep(0.5)


@dataclass(frozen=True)
class Run:
    """One operator on one server."""

    name: str
    client: Client
    progress: Progress
    process: Process

    async def figures(self, program: Path, objects: int, latencies: int) -> Figures:
        names = [f"object-{number:05}" for number in range(objects)]
        await self._write(["first"], 0)  # the operator has started
        await asyncio.sleep(_PAUSE)
        watched = self.process.megabytes
        await self._write(names, 0)
        await asyncio.sleep(_PAUSE)
        before = self.process.seconds
        await self._write(names, 1)
        await asyncio.sleep(_PAUSE)
        spent, busy = self.process.seconds - before, self.process.megabytes
        times = [await self._latency(number + 1) for number in range(latencies)]
        cuts = statistics.quantiles(times, n=100, method="inclusive")
        reconciles = objects * WORKLOADS[self.name].reconciles
        return Figures(lines_of(program), watched, busy, reconciles / max(spent, 1 / _TICKS), cuts[49], cuts[98])

    async def _write(self, names: list[str], version: int) -> None:
        """Give all objects a content; return when the operator has dealt with all of them."""
        self.progress.expect(names, version)
        await together(self._write_one(name, version) for name in names)
        async with asyncio.timeout(_START if names == ["first"] else _PATIENCE):
            await self.progress.wait()
            if self.name == "rollouts":
                await finish_rollouts(self.client, names)

    async def _write_one(self, name: str, version: int) -> None:
        load = WORKLOADS[self.name]
        source, body = self.client.for_resource(load.source, namespace="default"), load.body(name, version)
        if version:
            await source.patch(name, body, PatchType.MERGE)
        else:
            await source.create(body)

    async def _latency(self, version: int) -> float:
        self.progress.expect(["first"], version)
        began = perf_counter()
        await self._write_one("first", version)
        async with asyncio.timeout(_PATIENCE):
            await self.progress.wait()
        return self.progress.times["first"] - began


async def measure(name: str, command: list[str], program: Path, objects: int, latencies: int, watched: int) -> Figures:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder, "log")
        async with (
            server(Path(folder, "server")) as kubeconfig,
            connect(replace(load_kubeconfig(kubeconfig), qps=0)) as client,
        ):
            await prepare(client)
            if name == "mirror":
                objects_of_others = client.for_resource(CONFIG_MAPS, namespace="default")
                others = (config_map(f"other-{number:05}", 0) for number in range(watched))
                await together(
                    objects_of_others.create(other | {"metadata": {"name": name_of(other)}}) for other in others
                )
            progress = Progress(client, WORKLOADS[name])
            watching = asyncio.create_task(progress.watch())
            try:
                async with operator([*command, str(program)], kubeconfig, log) as process:
                    return await Run(name, client, progress, process).figures(program, objects, latencies)
            except TimeoutError:
                print(log.read_text()[-3000:], file=sys.stderr)  # noqa: ASYNC240
                raise
            finally:
                watching.cancel()


async def prepare(client: Client) -> None:
    await client.resource("v1", "namespaces").create({"metadata": {"name": "mirror"}})
    definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    for document in yaml.safe_load_all((PROGRAMS / "definitions.yaml").read_text()):
        await definitions.create(document)
    for resource in (BACKUPS, ROLLOUTS):
        while True:
            try:
                await client.for_resource(resource, namespace="default").list()
                break
            except NotFound:
                await asyncio.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kopf", type=Path, help="virtual environment with kopf and kubernetes")
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--watched", type=int, default=10000, help="further ConfigMaps beside those of the mirror")
    parser.add_argument("--latencies", type=int, default=100)
    parser.add_argument("--only", default=",".join(WORKLOADS), help="operators, separated by commas")
    options = parser.parse_args()
    print(_row("", "", "lines", "memory watching (MB)", "after load (MB)", "reconciles/s", "p50 (ms)", "p99 (ms)"))
    print("|---" * 8 + "|")
    for name in options.only.split(","):
        frameworks = {"pilothouse": [sys.executable]}
        if options.kopf:
            frameworks["kopf"] = [str(options.kopf / "bin/kopf"), "run", "--all-namespaces", "--quiet"]
        for framework, command in frameworks.items():
            program = PROGRAMS / f"{name}_{framework}.py"
            found = asyncio.run(measure(name, command, program, options.objects, options.latencies, options.watched))
            times = (f"{found.p50 * 1000:.0f}", f"{found.p99 * 1000:.0f}")
            print(
                _row(
                    name,
                    framework,
                    found.lines,
                    f"{found.watched:.0f}",
                    f"{found.busy:.0f}",
                    f"{found.throughput:,.0f}",
                    *times,
                )
            )
        print(
            _row(name, "controller-runtime", lines_of(PROGRAMS / f"{name}_controller_runtime.go"), "", "", "", "", "")
        )


def _row(*cells: object) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    main()
