"""PUT: replace an object, or create it if the resource allows that."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.body import check_name, decode_object_body, read_body
from pilothouse.apiserver.endpoints.fieldmanager.manager import manager_or_user_agent
from pilothouse.apiserver.endpoints.negotiation import negotiate_input, negotiate_output
from pilothouse.apiserver.endpoints.options import update_options
from pilothouse.apiserver.endpoints.response import object_response
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.write import UpdateAdmission
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Updater
from pilothouse.apiserver.registry.metadata import dedup_owner_references, ensure_namespace
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.tracing.spans import event
from pilothouse.apiserver.tracing.verb_spans import traced
from pilothouse.machinery.objects import Json, uid_of


def update_handler(storage: Updater, scope: RequestScope) -> Handler:
    async def update(request: Request) -> Response:
        output = negotiate_output(request, scope.served.serializers, scope.served.views)
        body = await read_body(request)
        options = await request.weight.run(update_options, request)
        serializer = negotiate_input(request, scope.served.serializers)
        event("About to convert to expected version")
        obj = await request.weight.run(_read, request, serializer, body, options)
        event("Conversion done")
        manager = manager_or_user_agent(options.field_manager, request.header(b"user-agent"))

        uid, decoded = uid_of(obj), [obj]

        def replacement(existing: Json | None) -> Json:
            """Return the object of the body. An attempt modifies the object, so a retry decodes the body again."""
            new = decoded.pop() if decoded else _read_again(request, serializer, body, options)
            scope.field_manager.update(existing, new, manager)
            return new

        event("About to store object in database")
        done = await UpdateAdmission(request, scope, options).store(storage, replacement, uid=uid)
        return await object_response(request, scope, output, done.result, status=201 if done.created else 200)

    def _read(request: Request, serializer: Serializer, body: bytes, options: WriteOptions) -> Json:
        obj = decode_object_body(request, scope, serializer, body, options.field_validation)
        ensure_namespace(obj, request.info.namespace if scope.served.namespaced else "")
        check_name(obj, request)
        dedup_owner_references(obj, request.warnings.append)
        return obj

    def _read_again(request: Request, serializer: Serializer, body: bytes, options: WriteOptions) -> Json:
        warnings = len(request.warnings)
        obj = _read(request, serializer, body, options)
        del request.warnings[warnings:]  # the first decoding has warned
        return obj

    return traced("Update", update)
