"""PATCH: JSON patch, merge patches and server-side apply, applied to the newest state of the object."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pilothouse.apiserver.endpoints.apply import ApplyMechanism
from pilothouse.apiserver.endpoints.body import check_name, read_body
from pilothouse.apiserver.endpoints.fieldmanager.manager import manager_or_user_agent
from pilothouse.apiserver.endpoints.fieldmanager.structured_merge import copy_of
from pilothouse.apiserver.endpoints.negotiation import APPLY_PATCHES, content_type_of, negotiate_output
from pilothouse.apiserver.endpoints.options import patch_options
from pilothouse.apiserver.endpoints.response import object_response
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.endpoints.write import UpdateAdmission
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.registry.interface import Patcher
from pilothouse.apiserver.registry.metadata import ensure_namespace
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.apiserver.tracing.spans import event
from pilothouse.apiserver.tracing.verb_spans import traced
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema.raw_json import keep_unchanged_raw

if TYPE_CHECKING:
    from pilothouse.apiserver.endpoints.patchers import ObjectPatcher


def patch_handler(storage: Patcher, scope: RequestScope) -> Handler:
    async def patch(request: Request) -> Response:
        patch_type = content_type_of(request)
        output = negotiate_output(request, scope.served.serializers, scope.served.views)
        body = await read_body(request)
        if request.audit is not None:
            await request.audit.log_request_patch(body)
        options = await request.weight.run(patch_options, request, patch_type)
        applies = patch_type in APPLY_PATCHES
        read: Callable[..., ApplyMechanism | PatchMechanism] = ApplyMechanism if applies else PatchMechanism
        mechanism = read(request, scope, body, options)

        def patched(existing: Json | None) -> Json:
            event("About to apply patch")
            obj = mechanism.patched(existing)
            ensure_namespace(obj, request.info.namespace if scope.served.namespaced else "")
            check_name(obj, request)
            return obj

        admission = UpdateAdmission(request, scope, options)
        done = await admission.store(storage, patched, force_allow_create=applies)
        event("Object stored in database")
        return await object_response(request, scope, output, done.result, status=201 if done.created else 200)

    return traced("Patch", patch)


class PatchMechanism:
    """A patch that requires an existing object. The body is parsed only if the object exists."""

    def __init__(self, request: Request, scope: RequestScope, body: bytes, options: WriteOptions) -> None:
        self.request = request
        self.scope = scope
        self.body = body
        self.options = options
        self.not_found = NotFound.of(request.info.group_resource, request.info.name)
        self.manager = manager_or_user_agent(options.field_manager, request.header(b"user-agent"))
        self._patcher: ObjectPatcher | None = None

    @property
    def patcher(self) -> ObjectPatcher:
        """Parse the body. Raises StatusError."""
        from pilothouse.apiserver.endpoints.patchers import PATCHERS  # imported on the first patch

        # A cached_property of Python 3.11 holds one lock for all requests while one body is parsed.
        if self._patcher is None:
            self._patcher = PATCHERS[content_type_of(self.request)](
                self.request, self.scope, self.body, self.options.field_validation
            )
        return self._patcher

    def patched(self, existing: Json | None) -> Json:
        if existing is None:
            raise self.not_found
        obj = self.patcher.apply(self.scope.shown(copy_of(existing)))
        self.scope.served.default(obj)
        new = self.scope.to_stored(obj)
        if (raw_fields := self.scope.served.decoder.raw_fields) is not None:
            keep_unchanged_raw(raw_fields, new, existing)
        self.scope.field_manager.update(existing, new, self.manager)
        return new
