"""A switch between network namespaces, as a process: it passes IP packets on, late, or not at all.

It makes a TUN device for each address, which whoever starts it moves into a namespace, and says "ready". Each line
of its input is a JSON object with the rules from now on; it ends with its input.

    {"cut": [[FROM, TO], ...], "delay": SECONDS, "loss": SHARE}

The kernel's own means for this (bridges, netfilter, netem) are not in every kernel; TUN devices nearly always are.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import select
import socket
import struct
import sys
import time
from contextlib import suppress
from itertools import count

_TUNSETIFF = 0x400454CA
_TUN, _WITHOUT_INFORMATION = 0x0001, 0x1000
_LARGEST = 65536
_MOST_UNDER_WAY = 10_000


def open_device(name: str) -> int:
    """A TUN device that is gone when the process is."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", name.encode(), _TUN | _WITHOUT_INFORMATION))
    return device


class PacketSwitch:
    def __init__(self, devices: dict[bytes, int], chance: random.Random) -> None:
        """`devices`: by the address that is reached through them."""
        self._devices = devices
        self._chance = chance
        self._cut: set[tuple[bytes, bytes]] = set()
        self._delay = self._loss = 0.0
        self._under_way: list[tuple[float, int, int, bytes]] = []  # when, the order, to which device, what
        self._numbers = count()

    def run(self) -> None:
        poll = select.poll()
        for source in (sys.stdin.fileno(), *self._devices.values()):
            poll.register(source, select.POLLIN)
        while True:
            for source, _ in poll.poll(self._patience()):
                if source == sys.stdin.fileno():
                    line = sys.stdin.buffer.readline()
                    if not line:
                        return
                    self._obey(json.loads(line))
                else:
                    self._pass_on(source)
            self._deliver()

    def _obey(self, rules: dict[str, object]) -> None:
        self._cut = {(socket.inet_aton(a), socket.inet_aton(b)) for a, b in rules["cut"]}  # type: ignore[attr-defined]
        self._delay, self._loss = float(str(rules["delay"])), float(str(rules["loss"]))
        print("done", flush=True)

    def _patience(self) -> float | None:
        """In milliseconds."""
        return max(0.0, self._under_way[0][0] - time.monotonic()) * 1000 if self._under_way else None

    def _pass_on(self, source: int) -> None:
        with suppress(BlockingIOError):
            for _ in range(64):
                packet = os.read(source, _LARGEST)
                sender, receiver = packet[12:16], packet[16:20]
                target = self._devices.get(receiver)
                if target is None or (sender, receiver) in self._cut or self._chance.random() < self._loss:
                    continue
                if not self._delay:
                    _write(target, packet)
                elif len(self._under_way) < _MOST_UNDER_WAY:
                    due = time.monotonic() + self._delay * self._chance.uniform(0.8, 1.2)
                    heapq.heappush(self._under_way, (due, next(self._numbers), target, packet))

    def _deliver(self) -> None:
        now = time.monotonic()
        while self._under_way and self._under_way[0][0] <= now:
            _, _, target, packet = heapq.heappop(self._under_way)
            _write(target, packet)


def _write(device: int, packet: bytes) -> None:
    """A device that is not up, or cannot keep up, loses it."""
    with suppress(OSError):
        os.write(device, packet)


def main(seed: str, *nodes: str) -> None:
    """Each node is DEVICE=ADDRESS."""
    pairs = [node.split("=") for node in nodes]
    devices = {socket.inet_aton(address): open_device(device) for device, address in pairs}
    switch = PacketSwitch(devices, random.Random(seed))
    print("ready", flush=True)
    switch.run()
