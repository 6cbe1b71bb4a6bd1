"""POST: create an object in a collection, or through a subresource that is named in the path."""

from __future__ import annotations

from typing import Any, cast

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.endpoints.body import decode_object_body, read_body
from pilothouse.apiserver.endpoints.fieldmanager.manager import manager_or_user_agent
from pilothouse.apiserver.endpoints.negotiation import negotiate_input, negotiate_output
from pilothouse.apiserver.endpoints.options import admission_options, create_options
from pilothouse.apiserver.endpoints.repeated_bodies import RepeatedBodies
from pilothouse.apiserver.endpoints.response import object_response
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.typed import TypedDecoder
from pilothouse.apiserver.endpoints.write import admit
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.errors import TooLargeToStore
from pilothouse.apiserver.registry.interface import Creator, NamedCreator, abilities_of
from pilothouse.apiserver.registry.metadata import dedup_owner_references, ensure_namespace, wipe_system_fields
from pilothouse.apiserver.registry.operations import Result
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.tracing.spans import event
from pilothouse.apiserver.tracing.verb_spans import traced
from pilothouse.machinery.objects import Json, metadata, name_of
from pilothouse.machinery.times import now


def create_handler(storage: Creator | NamedCreator, scope: RequestScope) -> Handler:
    can, either = abilities_of(storage), cast("Any", storage)
    named: NamedCreator | None = either if NamedCreator in can else None
    plain: Creator | None = either if Creator in can else None
    # A subresource may use uid and resourceVersion of the body as preconditions on the main resource.
    keeps_system_fields: bool = getattr(storage, "keeps_system_fields", False)
    # Built-in types never change.
    remembers = named is None and isinstance(scope.served.decoder, TypedDecoder)

    async def create(request: Request) -> Response:
        output = negotiate_output(request, scope.served.serializers, scope.served.views)
        serializer = negotiate_input(request, scope.served.serializers)
        body = await read_body(request)
        options = await request.weight.run(create_options, request)
        event("About to convert to expected version")
        obj = await request.weight.run(_read, request, serializer, body, options)
        event("Conversion done")
        result = await _admit_and_store(request, obj, options)
        return await object_response(request, scope, output, result, status=201)

    repeated = RepeatedBodies()

    def _read(request: Request, serializer: Serializer, body: bytes, options: WriteOptions) -> Json:
        manager = manager_or_user_agent(options.field_manager, request.header(b"user-agent"))
        if not remembers or request.audit is not None:
            return _decode(request, serializer, body, options, manager)
        circumstances = (serializer.media_type, options.field_validation, manager, request.info.namespace)
        known = repeated.recall(body, *circumstances)
        if known is not None:
            return known
        began, warned = now(), len(request.warnings)
        obj = _decode(request, serializer, body, options, manager)
        decoder = scope.served.decoder
        is_plain_json = decoder.raw_fields is None and decoder.printed(obj) is obj
        if is_plain_json and len(request.warnings) == warned:
            repeated.remember(obj, began, body, *circumstances)
        return obj

    def _decode(request: Request, serializer: Serializer, body: bytes, options: WriteOptions, manager: str) -> Json:
        obj = decode_object_body(request, scope, serializer, body, options.field_validation)
        if not keeps_system_fields:
            wipe_system_fields(obj)
        ensure_namespace(obj, request.info.namespace if scope.served.namespaced else "")
        dedup_owner_references(obj, request.warnings.append)
        scope.field_manager.update(None, obj, manager)
        return obj

    async def _admit_and_store(request: Request, obj: Json, options: WriteOptions) -> Result:
        name = request.info.name or name_of(obj)
        await admit(scope.admission, _attributes(request, scope, obj, name, options))

        async def validate(created: Json) -> None:
            await scope.admission.validate(_attributes(request, scope, created, name or name_of(created), options))

        ctx = scope.context(request)

        async def store() -> Result:
            event("About to store object in database")
            if named is not None:
                return await named.create_named(ctx, name, obj, options=options, validate=validate)
            assert plain is not None
            return await plain.create(ctx, obj, options=options, validate=validate)

        try:
            return await store()
        except TooLargeToStore:
            metadata(obj).pop("managedFields", None)
            return await store()

    return traced("Create", create)


def _attributes(request: Request, scope: RequestScope, obj: Json, name: str, options: WriteOptions) -> Attributes:
    return scope.attributes(
        request,
        Operation.CREATE,
        name=name,
        obj=obj,
        options=admission_options("CreateOptions", options.raw),
        dry_run=options.dry_run,
    )
