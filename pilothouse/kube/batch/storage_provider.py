"""The storages of the group batch. Deleting a job leaves its pods by default, which surprises people: they are told."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.interface import Deleted, ListResult, Validate
from pilothouse.apiserver.registry.options import DeleteOptions, ListOptions
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.apiserver.registry.view import RegistryView
from pilothouse.kube.batch.cronjobs import CRON_JOBS, CronJobStatusStrategy
from pilothouse.kube.batch.jobs import JOBS, JobStatusStrategy
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion

_PODS_ARE_PRESERVED = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


class BatchStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        jobs, cron_jobs = registries.open(JOBS), registries.open(CRON_JOBS)
        resources = [
            served(jobs, _JobStorage(jobs)),
            served(jobs, StatusStore(jobs, JobStatusStrategy()), subresource="status"),
            served(cron_jobs),
            served(cron_jobs, StatusStore(cron_jobs, CronJobStatusStrategy()), subresource="status"),
        ]
        return APIGroup("batch", [APIVersion(GroupVersion("batch", "v1"), resources)])


class _JobStorage(RegistryView):
    """Warns of deletes that do not say what becomes of the pods."""

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
