"""Validation of job status updates: only possible transitions.

Most rules compare with the stored status, so that an invalid stored status stays writable.
"""

from __future__ import annotations

from functools import cached_property

from pilothouse.kube.batch.job_policies import IndexesError, count_indexes, first_overlap
from pilothouse.kube.validation.replica_counts import validate_counts
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import OMIT_VALUE, Errors, Path, duplicate, invalid, required
from pilothouse.machinery.objects import Json, items, number, part, text
from pilothouse.machinery.times import parse_time
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal

_TERMINAL = ("Failed", "Complete", "FailureTarget")


def is_condition_true(job: Json, kind: str) -> bool:
    return _has_condition(job, kind, "True")


def _has_condition(job: Json, kind: str, status: str) -> bool:
    conditions = items(job, "status", "conditions")
    return any(condition.get("type") == kind and condition.get("status") == status for condition in conditions)


@dataclass(frozen=True)
class JobStatusUpdate:
    """An update of a job's status; `path` is the path of the status."""

    job: Json
    old: Json
    path: Path

    def validate(self) -> Errors:
        yield from validate_counts(self.status, self.path, "active", "succeeded", "failed", "ready", "terminating")
        seen: set[str] = set()
        for kind in ("succeeded", "failed"):
            for position, uid in enumerate(items(self.status, "uncountedTerminatedPods", kind)):
                path = self.path.child("uncountedTerminatedPods", kind).index(position)
                if not uid:
                    yield invalid(path, uid, "must not be empty")
                elif uid in seen:
                    yield duplicate(path, uid)
                seen.add(uid)
        for other in ("Failed", "FailureTarget"):
            if self.complete and self._is(other) and self._turned("Complete", other):
                yield from self._refuse_conditions(f"cannot set Complete=True and {other}=true conditions")
        yield from self._validate_completion_time()
        yield from self._validate_targets()
        if self.finished:
            active, uncounted = number(self.status, "active"), part(self.status, "uncountedTerminatedPods")
            if (self.finish_changed or self._changed("active")) and active > 0:
                yield invalid(self.path.child("active"), active, "active>0 is invalid for finished job")
            started = self.status.get("startTime") or self._never_had_to_start()
            if (self.finish_changed or self._changed("startTime")) and not started:
                yield required(self.path.child("startTime"), "startTime is required for finished job")
            if (self.finish_changed or self._changed("uncountedTerminatedPods")) and any(uncounted.values()):
                rendered = {"Succeeded": uncounted.get("succeeded"), "Failed": uncounted.get("failed")}
                yield invalid(self.path.child("uncountedTerminatedPods"), rendered, "must be empty for finished job")
        yield from self._validate_indexes()
        ready, terminating = self.status.get("ready"), number(self.status, "terminating")
        if (self.finish_changed or self._changed("terminating")) and self.finished and terminating > 0:
            yield invalid(self.path.child("terminating"), terminating, "terminating>0 is invalid for finished job")
        if self._changed("ready", "active") and ready is not None and ready > number(self.status, "active"):
            yield invalid(self.path.child("ready"), ready, "cannot set more ready pods than active")
        yield from self._validate_success_criteria()
        for kind in _TERMINAL:
            if self._was(kind) and not self._is(kind):
                yield from self._refuse_conditions(f"cannot disable the terminal {kind}=True condition")
        spec = self.job["spec"]
        # Counters do not decrease, except for a scaled-down indexed job.
        scalable = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
        for name in ("failed",) if scalable else ("failed", "succeeded"):
            if (count := number(self.status, name)) < number(self.before, name):
                yield invalid(self.path.child(name), count, f"cannot decrease the {name} counter")
        completion, start = self.status.get("completionTime"), self.status.get("startTime")
        if completion and self.before.get("completionTime") and self._changed("completionTime"):
            yield invalid(self.path.child("completionTime"), completion, FIELD_IMMUTABLE)
        resuming = self._was("Suspended") and _has_condition(self.job, "Suspended", "False")
        running = not self.job["spec"].get("suspend") and not resuming
        if self.before.get("startTime") and self._changed("startTime") and running:
            reason = "field is immutable for unsuspended job once set"
            yield invalid(self.path.child("startTime"), start, reason)
        yield from self._validate_success_criteria_kept()

    @cached_property
    def status(self) -> Json:
        return part(self.job, "status")

    @cached_property
    def before(self) -> Json:
        return part(self.old, "status")

    @cached_property
    def complete(self) -> bool:
        return self._is("Complete")

    @cached_property
    def finished(self) -> bool:
        return self.complete or self._is("Failed")

    @cached_property
    def finish_changed(self) -> bool:
        return self.finished != (self._was("Complete") or self._was("Failed"))

    def _is(self, condition: str) -> bool:
        return is_condition_true(self.job, condition)

    def _was(self, condition: str) -> bool:
        return is_condition_true(self.old, condition)

    def _turned(self, *conditions: str) -> bool:
        return any(self._is(condition) != self._was(condition) for condition in conditions)

    def _changed(self, *fields: str) -> bool:
        return any(not semantically_equal(self.status.get(field), self.before.get(field)) for field in fields)

    def _refuse_conditions(self, reason: str) -> Errors:
        yield invalid(self.path.child("conditions"), OMIT_VALUE, reason)

    def _validate_completion_time(self) -> Errors:
        path, completion = self.path.child("completionTime"), self.status.get("completionTime")
        if self._turned("Complete") or self._changed("completionTime"):
            if completion and not self.complete:
                reason = "cannot set completionTime when there is no Complete=True condition"
                yield invalid(path, completion, reason)
            if not completion and self.complete:
                yield required(path, "completionTime is required for Complete jobs")
        start = self.status.get("startTime")
        if self._changed("startTime", "completionTime") and start and completion and _is_before(completion, start):
            yield invalid(path, completion, "must be equal to or after `startTime`")

    def _validate_targets(self) -> Errors:
        """Require FailureTarget or SuccessCriteriaMet before the terminal condition."""
        failed = self._turned("Failed") or self._changed("failedIndexes")
        if failed and self._is("Failed") and not self._is("FailureTarget"):
            reason = "cannot set Failed=True condition without the FailureTarget=true condition"
            yield from self._refuse_conditions(reason)
        succeeded = self._turned("Complete", "SuccessCriteriaMet")
        if succeeded and self.complete and not self._is("SuccessCriteriaMet"):
            reason = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
            yield from self._refuse_conditions(reason)

    def _never_had_to_start(self) -> bool:
        spec = self.job["spec"]
        return spec.get("suspend") is True and spec.get("completions") == 0

    def _validate_indexes(self) -> Errors:
        spec, done = self.job["spec"], text(self.status, "completedIndexes")
        completions, failed = spec.get("completions"), self.status.get("failedIndexes")
        per_index = spec.get("backoffLimitPerIndex") is not None
        if self._changed("completedIndexes") and completions is not None:
            yield from self._validate_format("completedIndexes", completions)
        if self._changed("failedIndexes") and completions is not None and per_index and failed is not None:
            yield from self._validate_format("failedIndexes", completions)
        if self._changed("completedIndexes") and done and spec.get("completionMode") != "Indexed":
            reason = "cannot set non-empty completedIndexes when non-indexed completion mode"
            yield invalid(self.path.child("completedIndexes"), done, reason)
        if self._changed("failedIndexes") and not per_index and failed is not None:
            reason = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            yield invalid(self.path.child("failedIndexes"), failed, reason)
        if self._changed("failedIndexes", "completedIndexes") and completions is not None:
            index = first_overlap(done, failed or "", completions)
            if index is not None:
                reason = f"failedIndexes and completedIndexes overlap at index: {index}"
                yield invalid(self.path.child("failedIndexes"), failed, reason)

    def _validate_format(self, field: str, completions: int) -> Errors:
        indexes = text(self.status, field)
        try:
            count_indexes(indexes, completions)
        except IndexesError as error:
            yield invalid(self.path.child(field), indexes, f"error parsing {field}: {error}")

    def _validate_success_criteria(self) -> Errors:
        met = self._is("SuccessCriteriaMet")
        for other in ("Failed", "FailureTarget"):
            if met and self._is(other):
                yield from self._refuse_conditions(f"cannot set SuccessCriteriaMet=True and {other}=true conditions")
        if self.job["spec"].get("successPolicy") is not None and not met and self.complete:
            reason = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
            yield from self._refuse_conditions(reason)

    def _validate_success_criteria_kept(self) -> Errors:
        is_met, was_met = self._is("SuccessCriteriaMet"), self._was("SuccessCriteriaMet")
        if was_met and not is_met:
            yield from self._refuse_conditions("cannot disable the SuccessCriteriaMet=True condition")
        if self._was("Complete") and not was_met and is_met:
            reason = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
            yield from self._refuse_conditions(reason)


def _is_before(a: str, b: str) -> bool:
    earlier, later = parse_time(a), parse_time(b)
    return earlier is not None and later is not None and earlier < later
