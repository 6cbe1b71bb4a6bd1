"""The common part of writes: validation of managedFields and owner references after mutating admission, and the
authorization of a create by update.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authz.interface import Decision, attributes_of, forbidden
from pilothouse.apiserver.endpoints.options import admission_options
from pilothouse.apiserver.endpoints.scope import RequestScope
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.errors import TooLargeToStore
from pilothouse.apiserver.registry.interface import Updater
from pilothouse.apiserver.registry.metadata import dedup_owner_references
from pilothouse.apiserver.registry.operations import Updated, UpdateRequest
from pilothouse.apiserver.registry.options import WriteOptions
from pilothouse.machinery.apply.managed import InvalidManagedFields, decode_entries, set_entries
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, metadata


@dataclass(frozen=True, slots=True)
class UpdateAdmission:
    """Admission of one update."""

    request: Request
    scope: RequestScope
    options: WriteOptions

    async def store(
        self, storage: Updater, make: Callable[[Json | None], Json], *, uid: str = "", force_allow_create: bool = False
    ) -> Updated:
        """Run the update. `make` as in UpdateRequest, but synchronous.

        Only an apply may create by force. Other updates do not need managedFields: an object that is too large to store
        is stored without them if that is enough.
        """

        async def admitted(existing: Json | None) -> Json:
            obj = await self.request.weight.run(make, existing)
            operation = Operation.CREATE if existing is None else Operation.UPDATE
            await admit(self.scope.admission, self._attributes(operation, obj, existing))
            return obj

        async def admitted_without_owners(existing: Json | None) -> Json:
            obj = await admitted(existing)
            metadata(obj).pop("managedFields", None)
            return obj

        update = UpdateRequest(
            admitted,
            self.options,
            validate_create=self._validate_create,
            validate_update=self._validate_update,
            uid=uid,
            force_allow_create=force_allow_create,
        )
        ctx, name = self.scope.context(self.request), self.request.info.name
        try:
            return await storage.update(ctx, name, update)
        except TooLargeToStore:
            if force_allow_create:
                raise
        return await storage.update(ctx, name, replace(update, make=admitted_without_owners))

    async def _validate_create(self, obj: Json) -> None:
        # A create by update also requires the permission to create.
        attributes = replace(attributes_of(self.request), verb="create")
        answer = await self.scope.authorizer.authorize(attributes)
        if answer.decision is not Decision.ALLOW:
            raise forbidden(attributes, answer.reason)
        await self.scope.admission.validate(self._attributes(Operation.CREATE, obj, None))

    async def _validate_update(self, obj: Json, old: Json) -> None:
        await self.scope.admission.validate(self._attributes(Operation.UPDATE, obj, old))

    def _attributes(self, operation: Operation, obj: Json, old: Json | None) -> Attributes:
        kind = "CreateOptions" if operation is Operation.CREATE else "UpdateOptions"
        return self.scope.attributes(
            self.request,
            operation,
            name=self.request.info.name,
            obj=obj,
            old=old,
            options=admission_options(kind, self.options.raw),
            dry_run=self.options.dry_run,
        )


_WARNING = (
    ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
    "admission controller; please fix your requests: {why}"
)


async def admit(chain: AdmissionChain, attributes: Attributes) -> None:
    """Run mutating admission, and restore managedFields if admission made them invalid."""
    obj = attributes.obj
    assert obj is not None, "only writes of objects are admitted here"
    before = metadata(obj).get("managedFields")
    await chain.admit(attributes)
    await attributes.weight.run(_repair_metadata, attributes, obj, before)


def _repair_metadata(attributes: Attributes, obj: Json, before: Any) -> None:
    after = metadata(obj).get("managedFields")
    if after is not before:
        try:
            decode_entries(after)
        except InvalidManagedFields as error:
            set_entries(obj, before or [])
            attributes.warn(_WARNING.format(why=error))
    dedup_owner_references(obj, attributes.warn, after_admission=True)
