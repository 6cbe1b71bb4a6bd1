"""What PUT and PATCH share: admission around the new object, and the permission to create by updating."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authz.interface import Decision, attributes_of, forbidden
from pilothouse.apiserver.endpoints.fieldmanager.admission import admit
from pilothouse.apiserver.endpoints.options import admission_options
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.interface import Updated, UpdatedObject, Updater
from pilothouse.apiserver.registry.metadata import dedup_owner_references
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.machinery.objects import Json


async def store_update(
    request: Request,
    scope: RequestScope,
    storage: Updater,
    updated: UpdatedObject,
    options: WriteOptions,
    *,
    force_allow_create: bool = False,
) -> Updated:
    name = request.info.name

    def attributes(operation: Operation, obj: Json, old: Json | None) -> Attributes:
        kind = "CreateOptions" if operation is Operation.CREATE else "UpdateOptions"
        return scope.attributes(
            request,
            operation,
            name=name,
            obj=obj,
            old=old,
            options=admission_options(kind, options.raw),
            dry_run=options.dry_run,
        )

    async def admitted(existing: Json | None) -> Json:
        obj = await updated.make(existing)
        operation = Operation.CREATE if existing is None else Operation.UPDATE
        await admit(scope.admission, attributes(operation, obj, existing))
        dedup_owner_references(obj, request.warnings.append, after_admission=True)
        return obj

    async def validate_create(obj: Json) -> None:
        await _authorize_create(request, scope)
        await scope.admission.validate(attributes(Operation.CREATE, obj, None))

    async def validate_update(obj: Json, old: Json) -> None:
        await scope.admission.validate(attributes(Operation.UPDATE, obj, old))

    return await storage.update(
        scope.context(request),
        name,
        UpdatedObject(admitted, uid=updated.uid),
        options=options,
        validate_create=validate_create,
        validate_update=validate_update,
        force_allow_create=force_allow_create,
    )


async def _authorize_create(request: Request, scope: RequestScope) -> None:
    """Who may update may not thereby create."""
    attributes = replace(attributes_of(request), verb="create")
    answer = await scope.authorizer.authorize(attributes)
    if answer.decision is not Decision.ALLOW:
        raise forbidden(attributes, answer.reason)
