"""One run of a scenario from the snapshot: steps, perturbations at their points, and settling by virtual time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pilothouse.bench.faults.fault import Fault
from pilothouse.bench.request_log import EVENT as EVENT_VERB
from pilothouse.bench.request_log import READS, LogEntry, RequestLog
from pilothouse.explore.cluster import USERS, ExploreCluster, compile_cel, is_true
from pilothouse.explore.model import (
    EVENT,
    Change,
    Entry,
    EntryKind,
    Perturbation,
    PerturbationKind,
    Point,
    RunResult,
    key_of,
)
from pilothouse.explore.operators import Instance, new_instance
from pilothouse.explore.scenario import Scenario, ScenarioError, Step
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import parse_duration
from pilothouse.machinery.objects import Json

PERIODIC: Final = frozenset({"leases", "events"})
"""Resources whose writes are no work."""
CONCURRENT: Final = "explore.pilothouse.dev/concurrent"
"""Annotation that ConcurrentWrite sets."""
_STEP, _ACTION = "step", "action"
_MOST_REQUESTS: Final = 3000
_MOST_WRITES: Final = 400
_MOST_RESTARTS: Final = 3
_TAKE_OVER: Final = 60.0
"""Virtual seconds that a second instance gets to take over a lease."""
_HOLDS: Final = {
    PerturbationKind.KILL_BEFORE: "Before",
    PerturbationKind.KILL_AFTER: "After",
    PerturbationKind.TWO_INSTANCES: "Through",
    PerturbationKind.CONCURRENT_WRITE: "Through",
}
_EVENT_EFFECTS: Final = {
    PerturbationKind.DELAY_EVENT: "Hold",
    PerturbationKind.MERGE_EVENTS: "HoldLatest",
    PerturbationKind.DROP_AND_RELIST: "HoldThenExpire",
    PerturbationKind.EXPIRE_WATCH: "Expire",
    PerturbationKind.DUPLICATE_EVENT: "Duplicate",
}
_OVER_A_STEP: Final = frozenset({PerturbationKind.MERGE_EVENTS, PerturbationKind.DROP_AND_RELIST})


class _Endless(Exception):
    """The operator does not come to rest."""


@dataclass(slots=True)
class _Placed:
    """A perturbation with its fault on the server."""

    perturbation: Perturbation
    name: str
    fault: Fault
    done: bool = False
    reached_at: int = -2
    """Number of performed steps when the fault was reached."""


class Run:
    """One run. `perform` may be called once."""

    def __init__(
        self, cluster: ExploreCluster, perturbations: Sequence[Perturbation] = (), steps: Sequence[int] = ()
    ) -> None:
        self._cluster, self._perturbations = cluster, tuple(perturbations)
        self._scenario: Scenario = cluster.scenario
        self._steps = tuple(steps) or tuple(range(len(self._scenario.steps)))
        self._placed: list[_Placed] = []
        self._at_steps = [one for one in perturbations if one.point is None]
        self._log: RequestLog
        self._idle_marks: list[int] = [0]
        self._step_marks: list[tuple[int, int]] = []
        self._performed = 0
        self._limits = (0, 0)
        self._counted = self._write_count = 0
        self._crashes: list[str] = []
        self._restarts = 0
        self._done: set[str] = set()
        self._busy: tuple[str, ...] = ()
        self._tail: tuple[int, ...] = ()
        self._failed_wait = ""
        self._output = ""
        self._start_revision = 0

    async def perform(self) -> RunResult:
        """Run from the snapshot to the end. Raises ScenarioError for a scenario that cannot run."""
        began, cluster = time.monotonic(), self._cluster
        self._start_revision = await cluster.restore()
        start = cluster.bench.time.wall()
        with cluster.bench.log([*cluster.users]) as self._log:
            try:
                await self._place_faults()
                await self._start_instance(0)
                await self._progress()
                for index in self._steps:
                    await self._perform(index, self._scenario.steps[index])
                await self._settle()
            except _Endless as error:
                self._busy = (str(error),)
                self._tail = tuple(entry.number for entry in self._log.entries[-50:] if entry.is_write)
            finally:
                for instance in cluster.instances:
                    self._output = instance.output() or self._output
                    await instance.kill()
                cluster.instances.clear()
                cluster.frozen.clear()
            changes = await cluster.changes(self._start_revision)
            final = await cluster.final()
        for placed in self._placed:
            await cluster.remove_fault(placed.name)
        missed = [one.id for one in self._perturbations if one.id not in self._done]
        return RunResult(
            perturbations=self._perturbations,
            timeline=tuple(self._timeline(start, changes)),
            changes=tuple(changes),
            final=final,
            settled=not self._busy,
            busy=self._busy,
            tail=self._tail,
            missed=tuple(missed),
            failed_wait=self._failed_wait,
            crashes=tuple(self._crashes),
            output=self._output,
            seconds=time.monotonic() - began,
            virtual_seconds=cluster.bench.time.wall() - start,
            steps=self._steps,
        )

    # Perturbations

    async def _place_faults(self) -> None:
        for number, perturbation in enumerate(self._perturbations):
            if perturbation.point is None:
                continue
            name = f"explore-{number}"
            wishes = _wishes(perturbation, [*self._cluster.users])
            await self._cluster.add_fault(name, **wishes)
            fault = self._cluster.bench.faults.get(name)
            assert fault is not None
            self._placed.append(_Placed(perturbation, name, fault))

    def _interrupted(self) -> bool:
        """Whether a held request waits for its perturbation, or the operator loops."""
        for placed in self._placed:
            if placed.reached_at == -2 and placed.fault.reached.is_set():
                placed.reached_at = self._performed
                self._done.add(placed.perturbation.id)
                if placed.perturbation.kind not in _HOLDS and placed.perturbation.kind not in _EVENT_EFFECTS:
                    placed.done = True
        if self._is_over_limits():
            return True
        return any(
            placed.perturbation.kind in _HOLDS and placed.reached_at > -2 and not placed.done for placed in self._placed
        )

    async def _handle_reached(self) -> None:
        for placed in self._placed:
            kind = placed.perturbation.kind
            if placed.done or placed.reached_at == -2 or kind not in _HOLDS:
                continue
            placed.done = True
            if kind is PerturbationKind.TWO_INSTANCES:
                await self._two_instances(placed)
            elif kind is PerturbationKind.CONCURRENT_WRITE:
                await self._concurrent_write(placed)
            else:
                self._act(f"kill the operator {_HOLDS[kind].lower()} {placed.perturbation.point}")
                await self._kill()
                await self._cluster.remove_fault(placed.name)
                await self._start_instance(0)

    async def _two_instances(self, placed: _Placed) -> None:
        """Freeze the first instance at its write, let a second instance work, then release the write."""
        cluster = self._cluster
        if not cluster.instances:
            return
        first = cluster.instances[0]
        cluster.frozen.append(first)
        if first.access.user == USERS[0]:
            await cluster.add_fault("freeze", users=[first.access.user], hold="Through")
        self._act(f"freeze the operator at {placed.perturbation.point}, and start a second instance")
        await self._start_instance(1)
        await self._progress()
        await self._advance(_TAKE_OVER)
        self._act("let the frozen operator go on")
        await cluster.remove_fault(placed.name)
        await cluster.remove_fault("freeze")
        cluster.frozen.clear()
        await self._progress()
        self._act("kill the first instance")
        await first.kill()
        cluster.instances.remove(first)

    async def _concurrent_write(self, placed: _Placed) -> None:
        """Let another client annotate the object before the operator's write."""
        held = next(entry for entry in reversed(self._log.entries) if entry.fault == placed.name)
        self._act(f"another client annotates {held.resource} {held.name} before {placed.perturbation.point}")
        body = {"metadata": {"annotations": {CONCURRENT: "written"}}}
        path = await self._cluster.resource_path(held.group, held.resource, held.namespace, held.name)
        answer = await self._cluster.api.request("PATCH", path, body, media="application/merge-patch+json")
        if answer.status >= 400:
            self._done.discard(placed.perturbation.id)
        await self._cluster.remove_fault(placed.name)

    async def _release(self, *, over: bool) -> bool:
        """Release held events; with `over`, also those that are held over a step. Return whether there were any."""
        released = False
        for placed in self._placed:
            kind = placed.perturbation.kind
            if placed.done or placed.reached_at == -2 or kind not in _EVENT_EFFECTS:
                continue
            if kind in _OVER_A_STEP and not over and self._performed <= placed.reached_at:
                continue
            placed.done = True
            if _EVENT_EFFECTS[kind].startswith("Hold"):
                self._act(f"release {placed.perturbation.point}")
                await self._cluster.remove_fault(placed.name)
                released = True
        return released

    async def _after_step(self, index: int) -> None:
        """Apply the perturbations that follow a settled step."""
        for one in self._at_steps:
            if one.step != index or one.id in self._done or one.kind is PerturbationKind.DOWN_DURING_STEP:
                continue
            self._done.add(one.id)
            if one.kind is PerturbationKind.STALE_READ:
                await self._stale_read(one)
            elif one.kind is PerturbationKind.ADVANCE_CLOCK:
                self._act(f"advance the clock by {one.seconds:g} s")
                await self._advance(one.seconds)
            else:
                await self._meddle(one)
            await self._progress()

    async def _meddle(self, one: Perturbation) -> None:
        """Delete an owned object, or change an owned field."""
        target = one.target
        assert target is not None
        version = f"{target.group}/{target.version}" if target.group else target.version
        reference: Json = {"apiVersion": version, "kind": target.kind, "name": target.name}
        path = await self._cluster.path(reference | {"namespace": target.namespace})
        if one.kind is PerturbationKind.DELETE_OWNED:
            self._act(f"delete {target}")
            answer = await self._cluster.api.request("DELETE", path)
        else:
            self._act(f"set {one.path} of {target} to {one.value!r}")
            patch = [{"op": "add", "path": one.path, "value": one.value}]
            answer = await self._cluster.api.request("PATCH", path, patch, media="application/json-patch+json")
        if answer.status >= 400:
            self._done.discard(one.id)

    async def _stale_read(self, one: Perturbation) -> None:
        """Restart the operator against an API server that lags behind for one resource."""
        assert one.target is not None
        await self._kill()
        revisions = [
            change.revision
            for change in await self._cluster.changes(self._start_revision)
            if _is_of(change, one.target.kind, one.target.group)
        ]
        if len(revisions) < one.back:
            self._done.discard(one.id)
        else:
            revision = revisions[-one.back] - 1
            self._act(f"restart the operator; {one.target.resource} lag behind at revision {revision}")
            resource = f"{one.target.resource}.{one.target.group}"
            users = [*self._cluster.users]
            await self._cluster.add_fault(
                "stale", users=users, verbs=["list", "watch"], resources=[resource], at_revision=revision
            )
        await self._start_instance(0)
        await self._progress()
        await self._cluster.remove_fault("stale")
        self._act("the API server catches up")

    # Instances

    async def _start_instance(self, index: int) -> None:
        before = len(self._log.entries)
        instance = new_instance(self._scenario.program, await self._cluster.access(index))
        self._cluster.instances.append(instance)
        await instance.start()
        if instance.is_external:
            await self._wait_first_request(instance, before)

    async def _wait_first_request(self, instance: Instance, before: int) -> None:
        import asyncio

        end = time.monotonic() + self._scenario.program.start_timeout
        while len(self._log.entries) == before and not instance.failure() and not self._interrupted():
            if time.monotonic() > end:
                output = instance.output()
                raise ScenarioError(f"the operator sent no request within its startTimeout\n{output}")
            await asyncio.sleep(0.02)

    async def _kill(self) -> None:
        for instance in [one for one in self._cluster.instances if one not in self._cluster.frozen]:
            await instance.kill()
            self._output = instance.output() or self._output
            self._cluster.instances.remove(instance)

    async def _restart_crashed(self) -> bool:
        """Restart instances that ended; raise _Endless for a crash loop."""
        for instance in [*self._cluster.instances]:
            if not (failure := instance.failure()):
                continue
            self._crashes.append(failure)
            self._output = instance.output() or self._output
            self._restarts += 1
            await instance.kill()
            self._cluster.instances.remove(instance)
            if self._restarts > _MOST_RESTARTS:
                raise _Endless(f"the operator crashed {self._restarts} times: {failure}")
            self._act(f"restart the operator, which ended: {failure}")
            await self._start_instance(0)
            return True
        return False

    # Progress

    def _writes(self) -> int:
        """Return the number of writes so far."""
        for entry in self._log.entries[self._counted :]:
            self._write_count += entry.is_write and entry.resource not in PERIODIC
        self._counted = len(self._log.entries)
        return self._write_count

    def _is_over_limits(self) -> bool:
        requests, writes = self._limits
        return len(self._log.entries) > requests or self._writes() > writes

    async def _progress(self, *, over: bool = False) -> None:
        """Work until everything is idle at this moment of virtual time. Raises _Endless for a hot loop."""
        self._limits = (len(self._log.entries) + _MOST_REQUESTS, self._writes() + _MOST_WRITES)
        limits = self._limits
        while True:
            is_idle = await self._cluster.idle(self._interrupted)
            self._limits = limits
            if len(self._log.entries) > limits[0] or self._writes() > limits[1]:
                raise _Endless(f"more than {_MOST_WRITES} writes or {_MOST_REQUESTS} requests without a pause")
            if not is_idle:
                await self._handle_reached()
            elif not await self._restart_crashed() and not await self._release(over=over):
                self._idle_marks.append(len(self._log.entries))
                return

    async def _advance(self, seconds: float) -> None:
        async def let_work() -> None:
            if self._interrupted() or not await self._cluster.is_quiet():
                await self._progress()

        await self._cluster.bench.time.step(seconds, let_work)
        await self._progress()

    async def _settle(self) -> None:
        """Advance the time until a window without writes. Raises _Endless at the limit."""
        await self._progress(over=True)
        elapsed, window = 0.0, self._scenario.window
        while True:
            before, position = await self._objects_written(), len(self._log.entries)
            await self._advance(window)
            after = await self._objects_written()
            elapsed += window
            writes = [
                entry
                for entry in self._log.entries[position:]
                if entry.is_write and entry.resource not in PERIODIC and entry.code < 400
            ]
            if after == before and not [entry for entry in writes if entry.revision]:
                return
            if elapsed >= self._scenario.limit:
                self._tail = tuple(entry.number for entry in writes)
                last = writes[-1] if writes else None
                about = f", last {last.verb} {last.resource} {last.name}" if last is not None else ""
                self._busy = (f"{len(writes)} writes in the last {window:g} s after {elapsed:g} s{about}",)
                return

    async def _objects_written(self) -> int:
        """Return the revision of the last change that is not periodic."""
        changes = await self._cluster.changes(self._start_revision)
        return changes[-1].revision if changes else 0

    # Steps

    async def _perform(self, index: int, step: Step) -> None:
        down = [one for one in self._at_steps if one.step == index and one.kind is PerturbationKind.DOWN_DURING_STEP]
        if down:
            self._done.update(one.id for one in down)
            self._act("kill the operator")
            await self._kill()
        self._step_marks.append((len(self._log.entries), index))
        self._log.new_entry("user", _STEP, options={"message": step.name}, code=index)
        await self._do(step)
        self._performed += 1
        if down:
            await self._progress()
            self._act("start the operator")
            await self._start_instance(0)
        if step.settle:
            await self._progress()
            if step.wait is None:
                await self._advance(_SHORT)
        await self._after_step(index)

    async def _do(self, step: Step) -> None:
        cluster = self._cluster
        for obj in step.objects:
            await cluster.apply(obj)
        if step.patch is not None:
            path = await cluster.path(step.patch) + (f"/{sub}" if (sub := step.patch.get("subresource")) else "")
            media = "application/merge-patch+json"
            answer = await cluster.api.request("PATCH", path, step.patch["patch"], media=media)
            if answer.status >= 400:
                raise ScenarioError(f"step {step.name}: {answer.json['message']}")
        if step.delete is not None:
            options = {key: step.delete[key] for key in ("propagationPolicy",) if key in step.delete}
            answer = await cluster.api.request("DELETE", await cluster.path(step.delete), options or None)
            if answer.status >= 400 and answer.status != 404:
                raise ScenarioError(f"step {step.name}: {answer.json['message']}")
        if step.advance:
            await self._advance(step.advance)
        if step.wait is not None:
            await self._wait(step)

    async def _wait(self, step: Step) -> None:
        """Wait for the expression of the step, while virtual time passes."""
        assert step.wait is not None
        program, path = compile_cel(step.wait["cel"]), await self._cluster.path(step.wait)
        left, stride = parse_duration(step.wait.get("timeout") or "10m") / 1e9, 0.5
        while True:
            await self._progress(over=left <= 0)
            answer = await self._cluster.api.request("GET", path)
            holds, error = is_true(program, object=answer.json if answer.status == 200 else None)
            if holds:
                return
            if left <= 0:
                self._failed_wait = f"{step.name}: {error or 'the expression stayed false'}"
                return
            await self._advance(min(stride, left))
            left -= stride
            stride = min(stride * 2, 30.0)

    # The timeline

    def _act(self, message: str) -> None:
        self._log.new_entry("explorer", _ACTION, options={"message": message})

    def _timeline(self, start: float, changes: Sequence[Change]) -> list[Entry]:
        entries: list[Entry] = []
        step, marks = -1, iter([*self._idle_marks[1:], len(self._log.entries) + 1])
        mark = next(marks)
        causes: list[int] = []
        written = {change.revision: change for change in changes}
        for position, entry in enumerate(self._log.entries):
            while position >= mark:
                mark, causes = next(marks), []
            if entry.verb == _STEP:
                step = entry.code
            if entry.verb in READS or entry.verb == EVENT_VERB:
                causes.append(entry.number)
            entries.append(_entry(entry, step, tuple(causes) if entry.is_write else (), start, written))
        return entries


_SHORT: Final = 2.0
"""Virtual seconds after each step: retries and relists happen before the next step."""


def _entry(entry: LogEntry, step: int, causes: tuple[int, ...], start: float, written: dict[int, Change]) -> Entry:
    common: dict[str, Any] = {"number": entry.number, "step": step, "time": round(entry.time - start, 3)}
    if entry.verb in (_STEP, _ACTION):
        kind = EntryKind.STEP if entry.verb == _STEP else EntryKind.ACTION
        return Entry(kind=kind, actor=entry.user, message=entry.options["message"], **common)
    name = entry.name or _name_in(entry.body)
    if not name and entry.revision in written:
        obj = written[entry.revision].object or {}
        name = (obj.get("metadata") or {}).get("name") or ""
    is_event = entry.verb == EVENT_VERB
    return Entry(
        kind=EntryKind.EVENT if is_event else EntryKind.REQUEST,
        actor=entry.user,
        verb=entry.event if is_event else entry.verb,
        group=entry.group,
        resource=entry.resource,
        subresource=entry.subresource,
        namespace=entry.namespace,
        name=name,
        code=entry.code,
        before=entry.before,
        revision=entry.revision,
        body=entry.body,
        options=entry.options,
        causes=causes if entry.is_write else (),
        disturbed=bool(entry.fault),
        **common,
    )


def _name_in(body: Any) -> str:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _is_of(change: Change, kind: str, group: str) -> bool:
    obj = change.object or change.previous or {}
    return bool(obj) and key_of(obj).partition(" ")[0] == (f"{kind}.{group}" if group else kind)


def _wishes(one: Perturbation, users: list[str]) -> dict[str, Any]:
    """Return the keywords of the fault for a perturbation with a point."""
    point = one.point
    assert point is not None
    resource = f"{point.resource}.{point.group}" + (f"/{point.subresource}" if point.subresource else "")
    match: dict[str, Any] = {"users": users, "resources": [resource]}
    if point.verb == EVENT:
        events: Json = {"effect": _EVENT_EFFECTS[one.kind], "skip": point.occurrence - 1}
        events |= {"namespaces": [point.namespace]} if point.namespace else {}
        events |= {"names": [point.name]} if point.name else {}
        events |= {"types": [point.event]} if point.event else {}
        return {**match, "verbs": ["watch"], "events": events}
    match |= {"verbs": [point.verb], "skip": point.occurrence - 1, "times": 1}
    match |= {"namespaces": [point.namespace]} if point.namespace else {}
    match |= {"names": [point.name]} if point.name else {}
    if one.kind in _HOLDS:
        return {**match, "hold": _HOLDS[one.kind]}
    if one.kind is PerturbationKind.LOSE_RESPONSE:
        return {**match, "cut": "After"}
    code = 504 if one.kind is PerturbationKind.TIMEOUT else one.code
    return {**match, "answer": {"code": code}}


def generated_names(changes: Sequence[Change]) -> dict[str, str]:
    """Return name -> pattern of the objects whose names the server generated."""
    metas = [(change.object or change.previous or {}).get("metadata") or {} for change in changes]
    return {meta["name"]: f"{meta['generateName']}*" for meta in metas if meta.get("generateName")}


def point_of(entry: Entry, timeline: Sequence[Entry], patterns: Mapping[str, str]) -> Point:
    """Return the point of a request or event of an undisturbed run, with its number among matching entries.

    `patterns` are generated names with their pattern.
    """
    is_event = entry.kind is EntryKind.EVENT
    generated = not is_event and entry.verb == "create" and not _name_in(entry.body)
    name = "" if generated else patterns.get(entry.name, entry.name)
    occurrence = sum(
        other.kind is entry.kind
        and other.number <= entry.number
        and (other.verb, other.group, other.resource) == (entry.verb, entry.group, entry.resource)
        and (other.subresource, other.namespace) == (entry.subresource, entry.namespace)
        and (not name or patterns.get(other.name, other.name) == name)
        for other in timeline
    )
    return Point(
        verb=EVENT if is_event else entry.verb,
        resource=entry.resource,
        group=entry.group,
        subresource=entry.subresource,
        namespace=entry.namespace,
        name=name,
        event=entry.verb if is_event else "",
        occurrence=occurrence,
    )
