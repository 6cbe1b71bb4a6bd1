"""Deleting jobs: their pods stay by default, which surprises people, so that they are told."""

from __future__ import annotations

from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.interface import Deleted, ListResult, Validate
from pilothouse.apiserver.registry.options import DeleteOptions, ListOptions
from pilothouse.apiserver.registry.view import RegistryView

_ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


class JobStorage(RegistryView):
    """Warns of deletes that do not say what becomes of the pods."""

    async def delete(self, ctx: RequestContext, name: str, *, options: DeleteOptions, validate: Validate) -> Deleted:
        _warn(ctx, options)
        return await super().delete(ctx, name, options=options, validate=validate)

    async def delete_collection(
        self, ctx: RequestContext, *, options: DeleteOptions, selection: ListOptions, validate: Validate
    ) -> ListResult:
        _warn(ctx, options)
        return await super().delete_collection(ctx, options=options, selection=selection, validate=validate)


def _warn(ctx: RequestContext, options: DeleteOptions) -> None:
    if options.propagation_policy is None and options.orphan_dependents is None:
        ctx.warn(_ORPHANS)
