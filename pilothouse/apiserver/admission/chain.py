"""The chain of plugins, in order: all that admit first, and once more where one of them asks for it; then all that
validate."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, MutationPlugin, Operation, Plugin, ValidationPlugin
from pilothouse.apiserver.admission.metrics import CONTROLLER, STEP
from pilothouse.apiserver.tallies import Row
from pilothouse.machinery.dataclass import dataclass

_ADMIT, _VALIDATE = "admit", "validate"


@dataclass(frozen=True, slots=True)
class _Step:
    """One side of one plugin."""

    labels: tuple[str, ...]
    """Name, type and operation, under which it is measured."""
    run: Callable[[Attributes], Awaitable[None]]
    passed: Row = field(init=False)
    """How long it took where it refused nothing, which is mostly."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "passed", CONTROLLER.row((*self.labels, "false")))


_Steps: TypeAlias = dict[Operation, list[_Step]]


class AdmissionChain:
    """An empty chain admits everything."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self.plugins = tuple(plugins)

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        return self._plugins

    @plugins.setter
    def plugins(self, plugins: tuple[Plugin, ...]) -> None:
        self._plugins = plugins
        self._admitting = _steps(plugins, _ADMIT)
        self._validating = _steps(plugins, _VALIDATE)

    async def admit(self, attributes: Attributes) -> None:
        await _measured(attributes, _ADMIT, self._admit)

    async def validate(self, attributes: Attributes) -> None:
        await _measured(attributes, _VALIDATE, self._validate)

    async def _admit(self, attributes: Attributes) -> None:
        """The second round is the last, whatever changes in it."""
        steps = self._admitting[attributes.operation]
        await _run(attributes, steps)
        if attributes.reinvocation.should_reinvoke:
            attributes.reinvocation.is_reinvoke = True
            await _run(attributes, steps)

    async def _validate(self, attributes: Attributes) -> None:
        await _run(attributes, self._validating[attributes.operation])


def _steps(plugins: Sequence[Plugin], type: str) -> _Steps:
    sides = [(plugin, run) for plugin in plugins if (run := _side(plugin, type))]
    return {
        operation: [
            _Step((plugin.name, type, operation.value), run) for plugin, run in sides if plugin.handles(operation)
        ]
        for operation in Operation
    }


def _side(plugin: Plugin, type: str) -> Callable[[Attributes], Awaitable[None]] | None:
    """Most plugins have one side only."""
    if type == _ADMIT:
        return plugin.admit if isinstance(plugin, MutationPlugin) else None
    return plugin.validate if isinstance(plugin, ValidationPlugin) else None


async def _run(attributes: Attributes, steps: list[_Step]) -> None:
    start = time.perf_counter()
    for step in steps:
        try:
            await step.run(attributes)
        except BaseException:
            CONTROLLER.observe((*step.labels, "true"), time.perf_counter() - start)
            raise
        now = time.perf_counter()
        step.passed.observe(now - start)
        start = now


async def _measured(attributes: Attributes, type: str, phase: Callable[[Attributes], Awaitable[None]]) -> None:
    start, rejected = time.perf_counter(), "true"
    try:
        await phase(attributes)
        rejected = "false"
    finally:
        STEP.observe((type, attributes.operation.value, rejected), time.perf_counter() - start)
