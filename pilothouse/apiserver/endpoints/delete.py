"""DELETE: one object, or a collection."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.admission.interface import Operation
from pilothouse.apiserver.endpoints.body import read_body
from pilothouse.apiserver.endpoints.negotiation import negotiate_output
from pilothouse.apiserver.endpoints.options import admission_options, delete_options, list_options
from pilothouse.apiserver.endpoints.response import list_response, object_response
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import CollectionDeleter, GracefulDeleter
from pilothouse.apiserver.registry.operations import Validate
from pilothouse.apiserver.registry.options import DeleteOptions
from pilothouse.apiserver.tracing.spans import event
from pilothouse.apiserver.tracing.verb_spans import traced
from pilothouse.machinery.objects import Json


def delete_handler(storage: GracefulDeleter, scope: RequestScope) -> Handler:
    async def delete(request: Request) -> Response:
        output = negotiate_output(request, scope.served.serializers, scope.served.views)
        options = await _options(request, scope)
        validate = _validator(request, scope, options)
        event("About to delete object from database")
        deleted = await storage.delete(scope.context(request), request.info.name, options=options, validate=validate)
        event("Object deleted from database")
        # 202 only for clients that use the deprecated orphanDependents.
        accepted = not deleted.immediately and options.orphan_dependents is False
        return await object_response(request, scope, output, deleted.result, status=202 if accepted else 200)

    return traced("Delete", delete)


def delete_collection_handler(storage: CollectionDeleter, scope: RequestScope) -> Handler:
    async def delete_collection(request: Request) -> Response:
        output = negotiate_output(request, scope.served.serializers, scope.served.views)
        selection = replace(await request.weight.run(list_options, request, scope), watch=False)
        options = await _options(request, scope)
        validate = _validator(request, scope, options)
        deleted = await storage.delete_collection(
            scope.context(request), options=options, selection=selection, validate=validate
        )
        return await list_response(request, scope, output, deleted)

    return traced("Delete", delete_collection)


async def _options(request: Request, scope: RequestScope) -> DeleteOptions:
    body = await read_body(request)
    return await request.weight.run(delete_options, request, scope, body)


def _validator(request: Request, scope: RequestScope, options: DeleteOptions) -> Validate:
    """Return a validator that runs both phases of admission with the object before its deletion."""

    async def validate(old: Json) -> None:
        attributes = scope.attributes(
            request,
            Operation.DELETE,
            name=request.info.name,
            old=old,
            options=admission_options("DeleteOptions", options.raw),
            dry_run=options.dry_run,
        )
        await scope.admission.admit(attributes)
        await scope.admission.validate(attributes)

    return validate
