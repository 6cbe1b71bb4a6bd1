"""Replicas of Pilothouse on a three-member etcd, each process in a network of its own that can be taken away."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
from aetcd import rpc
from etcd_process import EtcdProcess, cluster_of
from network_namespaces import Network
from running_command import RunningCommand

from pilothouse.client import Client, connect, load_kubeconfig

MEMBERS = ("etcd-0", "etcd-1", "etcd-2")
_ANSWERS_WITHIN = 1.0


class Replica:
    """One `pilothouse serve`. It can be killed and started again; `start` returns when it is ready."""

    def __init__(self, network: Network, name: str, directory: Path, etcd: str) -> None:
        self.name = name
        self.directory = directory
        self._starts = 0
        self._running: RunningCommand | None = None
        self._command = [
            *network.within(name),
            *(sys.executable, "-m", "pilothouse.cli.main", "serve", "--data-dir", str(directory / "data")),
            *(f"--bind-address={network.address(name)}", f"--etcd-servers={etcd}"),
        ]

    async def start(self) -> None:
        self._starts += 1
        output = self.directory / f"{self._starts}.log"
        self._running = RunningCommand(self._command, self.directory, output, os.environ)
        await asyncio.to_thread(self._running.printed, "(export KUBECONFIG)")

    def share(self, others: Path) -> None:
        """Have the keys and authorities that another replica has made."""
        certificate_of_its_own = shutil.ignore_patterns("apiserver.*")
        shutil.copytree(others / "data/pki", self.directory / "data/pki", ignore=certificate_of_its_own)

    def client(self, timeout: float) -> Client:
        config = load_kubeconfig(self.directory / "data/admin.kubeconfig")
        return connect(replace(config, qps=0, timeout=timeout))

    def send(self, number: signal.Signals) -> None:
        if self._running is not None:
            self._running.process.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        if self._running is not None:
            self._running.process.wait()


class ReplicatedCluster:
    def __init__(self, directory: Path, network: Network, replicas: int) -> None:
        self.network = network
        self.members = [
            EtcdProcess(directory, name, host=network.address(name), within=network.within(name)) for name in MEMBERS
        ]
        for member in self.members:
            member.cluster = cluster_of(self.members)
        self.replicas = [
            Replica(network, name, directory / name, self._urls(first=index))
            for index, name in enumerate(replica_names(replicas))
        ]

    def _urls(self, *, first: int) -> str:
        """Each replica has another member that it likes best: a member that lags behind shows in what it alone says."""
        at = first % len(self.members)
        return ",".join(member.url for member in (*self.members[at:], *self.members[:at]))

    async def start(self) -> None:
        for member in self.members:
            member.start()
        first, *others = self.replicas
        first.directory.mkdir(parents=True)
        await first.start()
        for replica in others:
            replica.share(first.directory)
        await asyncio.gather(*(replica.start() for replica in others))

    def kill(self) -> None:
        for replica in self.replicas:
            replica.kill()
        for member in self.members:
            member.kill()

    def leader(self) -> EtcdProcess:
        """The member that a majority follows, as soon as there is one."""
        while True:
            found = [status for status in map(_status, self.members) if status is not None]
            for member, status in zip(self.members, map(_status, self.members), strict=True):
                followers = [other for other in found if status is not None and other.leader == status.header.member_id]
                if 2 * len(followers) > len(self.members):
                    return member
            time.sleep(0.1)

    def compact(self) -> None:
        """Forget all that was before now, wherever a majority is."""
        for member in self.members:
            with grpc.insecure_channel(member.url.removeprefix("http://")) as channel:
                kv = rpc.KVStub(channel)
                try:
                    now = kv.Range(rpc.RangeRequest(key=b"\0"), timeout=_ANSWERS_WITHIN).header.revision
                    kv.Compact(rpc.CompactionRequest(revision=now), timeout=_ANSWERS_WITHIN)
                except grpc.RpcError:
                    continue
                return


def replica_names(number: int) -> list[str]:
    return [f"replica-{index}" for index in range(number)]


@asynccontextmanager
async def replicated_cluster(directory: Path, *, replicas: int, seed: int) -> AsyncIterator[ReplicatedCluster]:
    with Network([*MEMBERS, *replica_names(replicas)], seed) as network:
        cluster = ReplicatedCluster(directory, network, replicas)
        try:
            await cluster.start()
            yield cluster
        finally:
            cluster.kill()


def _status(member: EtcdProcess) -> rpc.StatusResponse | None:
    with grpc.insecure_channel(member.url.removeprefix("http://")) as channel:
        try:
            return rpc.MaintenanceStub(channel).Status(rpc.StatusRequest(), timeout=_ANSWERS_WITHIN)
        except grpc.RpcError:
            return None
