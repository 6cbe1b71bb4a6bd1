"""NamespaceLifecycle: rejects creates in missing or terminating namespaces, and deletion of the immortal namespaces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Operation, refused
from pilothouse.machinery.errors import Forbidden, NotFound
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.status_error import NAMESPACE_TERMINATING

NamespacePhase: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Return a namespace's status.phase, or None for a missing namespace."""

IMMORTAL = frozenset(("default", "kube-system", "kube-public"))
_NAMESPACES = GroupResource("", "namespaces")
_NAMESPACED_REVIEWS = {("authorization.k8s.io", "localsubjectaccessreviews")}


class NamespaceReader:
    """Base of plugins that decide by the phase of a namespace."""

    def __init__(self, phase_of: NamespacePhase) -> None:
        self._phase_of = phase_of


class NamespaceLifecycle(NamespaceReader):
    name = "NamespaceLifecycle"

    def handles(self, operation: Operation) -> bool:
        return operation is not Operation.CONNECT

    async def admit(self, attributes: Attributes) -> None:
        resource = attributes.resource.group_resource
        if attributes.operation is Operation.DELETE and resource == _NAMESPACES and attributes.name in IMMORTAL:
            raise Forbidden.of(resource, attributes.name, "this namespace may not be deleted")
        # Updates and deletes stay allowed: only creates need an active namespace.
        if attributes.operation is not Operation.CREATE or not attributes.namespace or resource == _NAMESPACES:
            return
        if (resource.group, resource.resource) in _NAMESPACED_REVIEWS:
            return
        phase = await self._phase_of(attributes.namespace)
        if phase is None:
            raise NotFound.of(_NAMESPACES, attributes.namespace)
        if phase == "Terminating":
            namespace = attributes.namespace
            reason = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = refused(attributes, reason)
            cause = {
                "reason": NAMESPACE_TERMINATING,
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = (error.details or {}) | {"causes": [cause]}
            raise error
