"""The policies in force. Unbound policies and dangling bindings have no effect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from pilothouse.apiserver.admission.interface import Attributes
from pilothouse.apiserver.admission.policy.hooks import AdmissionPolicy, Hook, PolicyBinding
from pilothouse.apiserver.admission.refusals import NOT_YET_READY, refused
from pilothouse.apiserver.storage.cacher.errors import CacheNotReady

E = TypeVar("E")
T_co = TypeVar("T_co", covariant=True)

_POLICY_RESOURCES = frozenset(
    ("admissionregistration.k8s.io", f"{how}admission{what}")
    for how in ("validating", "mutating")
    for what in ("policies", "policybindings")
)
"""Exempt from API-based policies, so that a wrong policy can be removed."""
_REVIEWS = frozenset(
    (
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    )
)
"""Exempt from all policies: authorization and authentication reviews."""


class ObjectSource(Protocol[T_co]):
    """All stored objects of a resource; the same sequence until a change."""

    async def all(self) -> Sequence[T_co]:
        """Return all objects. Raises CacheNotReady."""


class PolicySource(Generic[E]):
    _policies: Sequence[AdmissionPolicy[E]]  # input of the cached hooks
    _bindings: Sequence[PolicyBinding]

    def __init__(
        self,
        policies: ObjectSource[AdmissionPolicy[E]],
        bindings: ObjectSource[PolicyBinding],
        static: Callable[[], Sequence[Hook[E]]],
    ) -> None:
        self._stored_policies, self._stored_bindings = policies, bindings
        self._static = static
        self._policies, self._bindings = (), ()
        self._hooks: Sequence[Hook[E]] = ()

    async def hooks(self, attributes: Attributes) -> Sequence[Hook[E]]:
        """Return the hooks: static policies first, then by policy name, each with bindings sorted by name. Raises
        Forbidden until the policies are loaded."""
        resource = (attributes.resource.group, attributes.resource.resource)
        if resource in _REVIEWS:
            return ()
        static = self._static()
        if resource in _POLICY_RESOURCES:
            return static
        try:
            policies, bindings = await self._stored_policies.all(), await self._stored_bindings.all()
        except CacheNotReady:
            raise refused(attributes, NOT_YET_READY) from None
        if policies is not self._policies or bindings is not self._bindings:
            self._hooks = bound_hooks(policies, bindings)
            self._policies, self._bindings = policies, bindings
        stored = self._hooks
        return [*static, *stored] if static else stored


def bound_hooks(policies: Sequence[AdmissionPolicy[E]], bindings: Sequence[PolicyBinding]) -> Sequence[Hook[E]]:
    bound: dict[str, list[PolicyBinding]] = defaultdict(list)
    for binding in bindings:
        bound[binding.policy_name].append(binding)
    return [Hook(policy, bound[policy.name]) for policy in policies if policy.name in bound]
