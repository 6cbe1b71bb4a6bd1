"""Jobs. The server generates pod labels and selector, unless manualSelector is set."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.metadata import generation_of
from pilothouse.apiserver.registry.operations import Deleted, ListResult, RequestContext, Validate
from pilothouse.apiserver.registry.options import DeleteOptions, ListOptions
from pilothouse.apiserver.registry.resource import Names, Resource, metadata_fields
from pilothouse.apiserver.registry.strategy import GarbageCollection
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.apiserver.registry.view import RegistryView, StatusStore
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kube import workloads
from pilothouse.kube.batch import job_validation
from pilothouse.kube.batch.job_status import JobStatusUpdate
from pilothouse.kube.batch.job_updates import validate_job_update
from pilothouse.kube.registries import Registries
from pilothouse.kube.served import served
from pilothouse.kube.strategy import StatusSubresource, gated
from pilothouse.machinery.durations import age, human_duration
from pilothouse.machinery.field import Errors, Path, invalid, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json, items, name_of, number, part
from pilothouse.machinery.times import parse_time
from pilothouse.machinery.validation.names import is_dns1123_label

_SPEC = root("spec")
_PODS_ARE_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)

_STATUS_ORDER = ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet")

_TOO_MANY = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
    "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
)


class JobStrategy(workloads.WorkloadStrategy):
    kind = GroupVersionKind("batch", "v1", "Job")
    garbage_collection = GarbageCollection.ORPHAN_DEPENDENTS
    gated_fields = (gated("WorkloadWithJob", "spec.scheduling"),)

    def default(self, obj: Json) -> None:
        job_validation.default_job(obj)

    def prepare_for_create(self, obj: Json) -> None:
        if not obj["spec"]["manualSelector"]:
            job_validation.generate_selector(obj)
        super().prepare_for_create(obj)

    def canonicalize(self, obj: Json) -> None:
        # Repeated here, because generated labels did not exist during defaulting.
        job_validation.default_labels(obj)

    def validate(self, obj: Json) -> Errors:
        yield from self._validate_job(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self._validate_job(obj, old)
        yield from self.validate_metadata_update(obj, old)
        yield from validate_job_update(obj, old, _SPEC)

    def _validate_job(self, obj: Json, old: Json | None = None) -> Errors:
        yield from self.validate_metadata(obj)
        yield from job_validation.validate_generated_selector(
            obj, prefixed=old is None or job_validation.has_prefixed_labels(old)
        )
        yield from job_validation.validate_job_spec(obj["spec"], _SPEC, old and old["spec"])
        completions = number(obj, "spec", "completions")
        if obj["spec"].get("completionMode") == job_validation.INDEXED and completions > 0:
            longest = f"{name_of(obj)}-{completions - 1}"
            if is_dns1123_label(longest):
                reason = f"will not able to create pod with invalid DNS label: {longest}"
                yield invalid(root("metadata", "name"), name_of(obj), reason)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        yield from workloads.pod_name_warnings(obj)
        yield from job_warnings(obj["spec"], _SPEC)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        if generation_of(obj) == generation_of(old):
            return ()
        return job_warnings(obj["spec"], _SPEC)


class JobStatusStrategy(StatusSubresource, JobStrategy):
    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from JobStatusUpdate(obj, old, root("status")).validate()


def _status(job: Json) -> str:
    holds = {"Terminating": is_deleting(job)}
    for condition in items(job, "status", "conditions"):
        holds.setdefault(condition.get("type") or "", condition.get("status") == "True")
    return next((status for status in _STATUS_ORDER if holds.get(status)), "Running")


def _completions(job: Json) -> str:
    succeeded, completions = number(job, "status", "succeeded"), part(job, "spec").get("completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = number(job, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(job: Json) -> str:
    status = part(job, "status")
    start, completion = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    if not completion:
        return age(start)
    began, ended = parse_time(start), parse_time(completion)
    return human_duration(ended - began if ended and began else timedelta())


JOBS = Resource(
    names=Names("jobs", kind="Job", categories=["all"]),
    strategy=JobStrategy(),
    status=JobStatusStrategy(),
    group="batch",
    fields=lambda obj: metadata_fields(obj) | {"status.successful": str(number(obj, "status", "succeeded"))},
    indexed_fields=("metadata.name", "status.successful"),
    unsupported_label=lambda _, label: f"field label {quote(label)} not supported for Job",
    columns=[
        NAME,
        Column("Status", _status, description="Status of the job."),
        Column("Completions", _completions, documented=("io.k8s.api.batch.v1.JobStatus", "succeeded")),
        Column("Duration", _duration, description="Time required to complete the job."),
        AGE,
        *workloads.container_columns(),
        workloads.selector_column("io.k8s.api.batch.v1.JobSpec"),
    ],
)


def served_jobs(registries: Registries) -> list[ServedResource]:
    registry = registries.open(JOBS)
    return [
        served(registry, _JobStorage(registry)),
        served(registry, StatusStore(registry, JobStatusStrategy()), subresource="status"),
    ]


class _JobStorage(RegistryView):
    """Warn about deletes without a propagation policy."""

    async def delete(self, ctx: RequestContext, name: str, *, options: DeleteOptions, validate: Validate) -> Deleted:
        _warn_of_preserved_pods(ctx, options)
        return await super().delete(ctx, name, options=options, validate=validate)

    async def delete_collection(
        self, ctx: RequestContext, *, options: DeleteOptions, selection: ListOptions, validate: Validate
    ) -> ListResult:
        _warn_of_preserved_pods(ctx, options)
        return await super().delete_collection(ctx, options=options, selection=selection, validate=validate)


def _warn_of_preserved_pods(ctx: RequestContext, options: DeleteOptions) -> None:
    if options.propagation_policy is None and options.orphan_dependents is None:
        ctx.warn(_PODS_ARE_PRESERVED)


def job_warnings(spec: Json, path: Path) -> Iterable[str]:
    too_many = number(spec, "completions") > job_validation.COMPLETIONS_SOFT_LIMIT
    too_wide = number(spec, "parallelism") > job_validation.PARALLELISM_SOFT_LIMIT
    if spec.get("completionMode") == job_validation.INDEXED and too_many and too_wide:
        yield f"{path}: {_TOO_MANY}"
    yield from workloads.template_warnings(spec["template"], path.child("template"))
