"""PATCH: JSON patch, JSON merge patch and strategic merge patch, applied to the newest state of the object."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.body import check_name
from pilothouse.apiserver.endpoints.negotiation import negotiate_output
from pilothouse.apiserver.endpoints.options import patch_options
from pilothouse.apiserver.endpoints.patchers import PATCHERS
from pilothouse.apiserver.endpoints.response import object_response
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.write import store_update
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Patcher, UpdatedObject
from pilothouse.apiserver.registry.metadata import ensure_namespace
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json


def patch_handler(storage: Patcher, scope: RequestScope) -> Handler:
    async def patch(request: Request) -> Response:
        patch_type = request.header(b"content-type").partition(";")[0].strip()
        output = negotiate_output(request, scope.serializers)
        body = await request.read_body(scope.max_body)
        options = patch_options(request, patch_type)
        patcher = PATCHERS[patch_type](request, scope, body, options.field_validation)

        async def patched(existing: Json | None) -> Json:
            if existing is None:
                raise NotFound.of(request.info.group_resource, request.info.name)
            obj = patcher.apply(scope.served(existing))
            scope.default(obj)
            ensure_namespace(obj, request.info.namespace if scope.namespaced else "")
            check_name(obj, request)
            return scope.stored(obj)

        done = await store_update(request, scope, storage, UpdatedObject(patched), options)
        return object_response(request, scope, output, done.result, status=201 if done.created else 200)

    return patch
