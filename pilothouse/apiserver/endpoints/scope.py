"""RequestScope: the dependencies of the handlers of one resource or subresource in one version."""

from __future__ import annotations

from pilothouse.apiserver.admission.chain import AdmissionChain
from pilothouse.apiserver.admission.interface import Attributes, EquivalentResources, Operation, no_audit
from pilothouse.apiserver.authz.interface import Authorizer
from pilothouse.apiserver.endpoints.fieldmanager.manager import FieldManager
from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.http import Request
from pilothouse.apiserver.registry.operations import RequestContext
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json

_NAMESPACES = GroupVersionResource("", "v1", "namespaces")


@dataclass(frozen=True, slots=True)
class RequestScope:
    served: ServedResource
    resource: GroupVersionResource
    field_manager: FieldManager
    admission: AdmissionChain
    authorizer: Authorizer
    equivalents: EquivalentResources
    """Other resources that represent the same objects."""
    run_options: ServerRunOptions

    def context(self, request: Request) -> RequestContext:
        return RequestContext(
            namespace=request.info.namespace if self.served.namespaced else "",
            resource=request.info.group_resource,
            user=request.user,
            warn=request.warnings.append,
            verb=request.info.verb,
            is_own=request.is_own,
            weight=request.weight,
            collects_garbage=self.run_options.enable_garbage_collector,
            delete_workers=self.run_options.delete_collection_workers,
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
            kind=self.served.kind,
            resource=self.resource,
            subresource=self.served.subresource,
            # A namespace is in its own namespace, even on creation, when the path does not name it.
            namespace=request.info.namespace or (name if self.resource == _NAMESPACES else ""),
            name=name,
            user=request.user,
            obj=obj,
            old=old,
            options=options,
            dry_run=dry_run,
            warn=request.warnings.append,
            annotate=request.annotate if request.audit is not None else no_audit,
            equivalents=self.equivalents,
            weight=request.weight,
            deadline=request.deadline,
        )

    def to_stored(self, obj: Json) -> Json:
        return obj if self.served.to_stored is None else self.served.to_stored(obj)

    def shown(self, obj: Json) -> Json:
        """Return the object as responses in this version show it. May consume `obj`, or return parts of it."""
        served = obj if self.served.from_stored is None else self.served.from_stored(obj)
        return self.served.decoder.printed(served)
