"""RequestScope: all that the handlers of one resource (or subresource) in one version share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.equivalents import EquivalentResources
from pilothouse.apiserver.admission.interface import NO_EQUIVALENTS, Attributes, Operation
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.decoding import ObjectDecoder
from pilothouse.apiserver.endpoints.fieldmanager.manager import FieldManager
from pilothouse.apiserver.endpoints.patch_types import ALL_PATCHES
from pilothouse.apiserver.endpoints.serializers.interface import View
from pilothouse.apiserver.endpoints.serializers.registry import BUILT_IN, Serializers
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.context import RequestContext
from pilothouse.apiserver.registry.table import DEFAULT_COLUMNS, Column
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors import fields

MAX_BODY = 3 * 1024 * 1024

_NAMESPACES = GroupVersionResource("", "v1", "namespaces")


def no_default(obj: Json) -> None:
    """A kind without defaults."""


@dataclass(frozen=True, slots=True)
class RequestScope:
    resource: GroupVersionResource
    view: View
    namespaced: bool
    admission: AdmissionChain
    authorizer: Authorizer
    decoder: ObjectDecoder
    field_manager: FieldManager
    subresource: str = ""
    equivalents: EquivalentResources = NO_EQUIVALENTS
    """Other resources that are views of the same objects."""
    default: Callable[[Json], None] = no_default
    to_stored: Callable[[Json], Json] | None = None
    """From this version to the stored form; None where they are the same."""
    convert_field: fields.Transform | None = None
    """Refuses field labels that the kind does not have."""
    columns: Sequence[Column] = DEFAULT_COLUMNS
    row_order: Callable[[Json], Any] | None = None
    """What the rows of a list's table are sorted by, if not the order of the objects."""
    serializers: Serializers = BUILT_IN
    patch_types: tuple[str, ...] = ALL_PATCHES
    min_request_timeout: float = 1800.0
    max_body: int = MAX_BODY

    def context(self, request: Request) -> RequestContext:
        return RequestContext(
            namespace=request.info.namespace if self.namespaced else "",
            resource=request.info.group_resource,
            user=request.user,
            warn=request.warnings.append,
            user_agent=request.header(b"user-agent"),
            verb=request.info.verb,
            weight=request.weight,
        )

    def attributes(
        self,
        request: Request,
        operation: Operation,
        *,
        name: str,
        obj: Json | None = None,
        old: Json | None = None,
        options: Json | None = None,
        dry_run: bool = False,
    ) -> Attributes:
        return Attributes(
            operation=operation,
            kind=self.view.kind,
            resource=self.resource,
            subresource=self.subresource,
            # A namespace lies in itself, also when it is created and the path does not say so.
            namespace=request.info.namespace or (name if self.resource == _NAMESPACES else ""),
            name=name,
            user=request.user,
            obj=obj,
            old=old,
            options=options,
            dry_run=dry_run,
            warn=request.warnings.append,
            annotate=request.annotate,
            equivalents=self.equivalents,
            weight=request.weight,
        )

    def stored(self, obj: Json) -> Json:
        return obj if self.to_stored is None else self.to_stored(obj)

    def served(self, obj: Json) -> Json:
        return obj if self.view.convert is None else self.view.convert(obj)
