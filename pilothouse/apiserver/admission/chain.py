"""The admission chain: runs all mutating plugins in order, reinvokes them on request, then runs all validating
plugins."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from typing import TypeAlias

from pilothouse.apiserver.admission import interface
from pilothouse.apiserver.admission.metrics import CONTROLLER, STEP
from pilothouse.apiserver.tallies import HistogramRow
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource

_ADMIT, _VALIDATE = "admit", "validate"


@dataclass(frozen=True, slots=True)
class _Step:
    """One side (admit or validate) of a plugin."""

    labels: tuple[str, ...]
    """Metric labels: name, type and operation."""
    run: Callable[[interface.Attributes], Awaitable[None]]
    passed: HistogramRow = field(init=False)
    """Latency of calls that did not reject (the common case)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "passed", CONTROLLER.row((*self.labels, "false")))


@dataclass(frozen=True, slots=True)
class _Phase:
    """One side of all plugins that handle an operation on a resource."""

    labels: tuple[str, ...]
    steps: tuple[_Step, ...]
    passed: HistogramRow = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "passed", STEP.row((*self.labels, "false")))

    async def run(self, attributes: interface.Attributes) -> None:
        start = time.perf_counter()
        for step in self.steps:
            try:
                await step.run(attributes)
            except BaseException:
                CONTROLLER.observe((*step.labels, "true"), time.perf_counter() - start)
                raise
            now = time.perf_counter()
            step.passed.observe(now - start)
            start = now


_Phases: TypeAlias = dict[tuple[interface.Operation, str, str], _Phase]
"""(operation, group, resource) → phase; filled on first use."""

_MOST_PHASES = 4096
"""Maximum number of cached phases; the cache is cleared beyond, because custom resources come and go."""


class AdmissionChain:
    """The admission plugins of every write. An empty chain admits everything.

    >>> from pilothouse.apiserver import AdmissionChain
    >>> AdmissionChain().plugins
    ()
    """

    def __init__(self, plugins: Sequence[interface.Plugin] = ()) -> None:
        self.plugins = tuple(plugins)

    @property
    def plugins(self) -> tuple[interface.Plugin, ...]:
        return self._plugins

    @plugins.setter
    def plugins(self, plugins: tuple[interface.Plugin, ...]) -> None:
        self._plugins = plugins
        self._admitting: _Phases = {}
        self._validating: _Phases = {}

    async def admit(self, attributes: interface.Attributes) -> None:
        await _measured(attributes, self._phase(self._admitting, _ADMIT, attributes), _admit)

    async def validate(self, attributes: interface.Attributes) -> None:
        await _measured(attributes, self._phase(self._validating, _VALIDATE, attributes), _Phase.run)

    def _phase(self, phases: _Phases, type: str, attributes: interface.Attributes) -> _Phase:
        operation, resource = attributes.operation, attributes.resource
        key = (operation, resource.group, resource.resource)
        phase = phases.get(key)
        if phase is None:
            if len(phases) >= _MOST_PHASES:
                phases.clear()
            phase = phases[key] = _phase(self._plugins, type, operation, resource.group_resource)
        return phase


async def _admit(phase: _Phase, attributes: interface.Attributes) -> None:
    """Run the phase, and at most one reinvocation."""
    await phase.run(attributes)
    if attributes.reinvocation.should_reinvoke:
        attributes.reinvocation.is_reinvoke = True
        await phase.run(attributes)


def _phase(
    plugins: Sequence[interface.Plugin], type: str, operation: interface.Operation, resource: GroupResource
) -> _Phase:
    steps = [
        _Step((plugin.name, type, operation.value), run)
        for plugin in plugins
        if plugin.handles(operation)
        and (not isinstance(plugin, interface.SelectivePlugin) or resource in plugin.resources)
        and (run := _method_of(plugin, type))
    ]
    return _Phase((type, operation.value), tuple(steps))


def _method_of(plugin: interface.Plugin, type: str) -> Callable[[interface.Attributes], Awaitable[None]] | None:
    """Return the plugin's method for this phase, or None."""
    if type == _ADMIT:
        return plugin.admit if isinstance(plugin, interface.MutationPlugin) else None
    return plugin.validate if isinstance(plugin, interface.ValidationPlugin) else None


async def _measured(
    attributes: interface.Attributes, phase: _Phase, run: Callable[[_Phase, interface.Attributes], Awaitable[None]]
) -> None:
    start = time.perf_counter()
    try:
        await run(phase, attributes)
    except BaseException:
        STEP.observe((*phase.labels, "true"), time.perf_counter() - start)
        raise
    phase.passed.observe(time.perf_counter() - start)
