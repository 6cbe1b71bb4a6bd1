"""A simulated container without a server."""

from __future__ import annotations

from pilothouse.client import Json
from pilothouse.nodes.containers.budget import Budget, Limits, Machine
from pilothouse.nodes.containers.container import Containers
from pilothouse.nodes.containers.process import Given, Kept, Process
from pilothouse.nodes.containers.shell import run_command
from pilothouse.nodes.containers.volumes import Objects

SPEC: Json = {
    "name": "app",
    "env": [
        {"name": "COLOR", "value": "blue"},
        {"name": "SKY", "value": "is $(COLOR)"},
        {"name": "ME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
}
POD: Json = {"metadata": {"name": "web", "namespace": "default", "uid": "u"}, "spec": {"containers": [SPEC]}}


class Box:
    """A container, and what was written in it last."""

    def __init__(self) -> None:
        self.containers, self.machine = Containers(), Machine()
        self.slept = 0.0
        self.budget: Budget | None = None

    async def run(self, *words: str, stdin: bytes = b"", limits: Limits | None = None) -> tuple[int, str, str]:
        code, out, errors = await self.run_binary(*words, stdin=stdin, limits=limits)
        return code, out.decode(), errors.decode()

    async def run_binary(
        self, *words: str, stdin: bytes = b"", limits: Limits | None = None
    ) -> tuple[int, bytes, bytes]:
        """Run a command. Raises Killed."""
        async with self.machine.process(limits) as budget:
            self.budget = budget
            out, errors = Kept(budget), Kept(budget)
            container = await self.containers.enter(POD, SPEC, Objects(), budget)
            process = Process([*words], container, Given(stdin, budget), out, errors, self._sleep, budget)
            return await run_command(process), out.taken(), errors.taken()

    async def _sleep(self, seconds: float) -> None:
        self.slept += seconds
