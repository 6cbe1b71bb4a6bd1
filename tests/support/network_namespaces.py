"""A network of its own on this machine: nodes in network namespaces, and one switch between them that can fail.

The process that makes it is a node, too, called "here". Nothing else of the machine's network is touched: the
addresses are those that are kept for benchmarks of networks, 198.18.0.0/15.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType

import packet_switch

NO_NAMESPACES = "this user may not make network namespaces"
HERE = "here"
_PREFIX = "pilothouse-chaos"
_LARGEST_PACKET = "9000"


def can_make_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None or not os.access("/dev/net/tun", os.W_OK):
        return False
    name = f"{_PREFIX}-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    if made:
        _remove(name)
    return made


@dataclass(frozen=True)
class Weather:
    """How the network is. `cut`: pairs of nodes, from the first of which nothing comes to the second."""

    cut: frozenset[tuple[str, str]] = frozenset()
    delay: float = 0.0
    loss: float = 0.0


class Network:
    """For a `with` block, at the end of which all processes in it are killed."""

    def __init__(self, nodes: Sequence[str], seed: int) -> None:
        self._number = os.getpid()
        self._nodes = (HERE, *nodes)
        self._seed = seed
        self.weather = Weather()

    def __enter__(self) -> Network:
        devices = [f"{self._device(node)}={self.address(node)}" for node in self._nodes]
        command = [sys.executable, __file__, self._namespace(""), str(self._seed), *devices]
        pipe = subprocess.PIPE
        self._switch = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        self._expect("ready")
        for node in self._nodes:
            self._set_up(node)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._switch.stdin is not None
        assert self._switch.stdout is not None
        self._switch.stdin.close()
        self._switch.wait()
        self._switch.stdout.close()

    def address(self, node: str) -> str:
        return f"198.18.{self._number % 250}.{self._nodes.index(node) + 1}"

    def within(self, node: str) -> tuple[str, ...]:
        """What a command begins with that is to run there."""
        return ("ip", "netns", "exec", self._namespace(node))

    @contextmanager
    def cut_off(self, some: Collection[str], others: Collection[str], *, one_way: bool = False) -> Iterator[None]:
        """Nothing comes from some to others, nor back unless `one_way`."""
        pairs = {(a, b) for a in some for b in others if a != b}
        with self.under(cut=pairs if one_way else pairs | {(b, a) for a, b in pairs}):
            yield

    @contextmanager
    def under(self, *, cut: Iterable[tuple[str, str]] = (), delay: float = 0.0, loss: float = 0.0) -> Iterator[None]:
        before = self.weather
        self._become(replace(before, cut=before.cut | frozenset(cut), delay=delay, loss=loss))
        try:
            yield
        finally:
            self._become(before)

    def _become(self, weather: Weather) -> None:
        self.weather = weather
        cut = [(self.address(a), self.address(b)) for a, b in weather.cut]
        assert self._switch.stdin is not None
        self._switch.stdin.write(json.dumps({"cut": cut, "delay": weather.delay, "loss": weather.loss}) + "\n")
        self._switch.stdin.flush()
        self._expect("done")

    def _expect(self, word: str) -> None:
        assert self._switch.stdout is not None
        assert self._switch.stdout.readline().strip() == word, "the switch has failed"

    def _set_up(self, node: str) -> None:
        device, where = self._device(node), tuple[str, ...]()
        if node != HERE:
            name = self._namespace(node)
            _ip("netns", "add", name)
            _ip("link", "set", device, "netns", name)
            where = ("-n", name)
            _ip(*where, "link", "set", "lo", "up")
        _ip(*where, "address", "add", f"{self.address(node)}/24", "dev", device)
        _ip(*where, "link", "set", device, "mtu", _LARGEST_PACKET, "up")

    def _device(self, node: str) -> str:
        return f"ph{self._number}-{self._nodes.index(node)}"

    def _namespace(self, node: str) -> str:
        return f"{_PREFIX}-{self._number}-{node}"


def _ip(*arguments: str) -> str:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True).stdout


def _remove(prefix: str) -> None:
    """Take away the namespaces whose names begin like that, with all that runs in them."""
    for name in [line.split()[0] for line in _ip("netns", "list").splitlines()]:
        if name.startswith(prefix):
            for pid in _ip("netns", "pids", name).split():
                subprocess.run(["kill", "-KILL", pid], capture_output=True, check=False)
            _ip("netns", "delete", name)


def main(prefix: str, *switch: str) -> None:
    """Be the switch, and clean up when whoever needed it is gone, however it ended."""
    try:
        packet_switch.main(*switch)
    finally:
        _remove(prefix)


if __name__ == "__main__":
    main(*sys.argv[1:])
