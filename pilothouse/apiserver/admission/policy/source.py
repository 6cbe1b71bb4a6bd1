"""The policies that hold at the moment. A policy without a binding, and a binding without a policy, do nothing."""

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
"""No policy that clients write has a say in what policies are, so that a wrong one can be taken back."""
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
"""No policy has a say in who may do what."""


class ObjectSource(Protocol[T_co]):
    """Everything that is stored of one resource; the same sequence as long as nothing changes."""

    async def all(self) -> Sequence[T_co]:
        """Raises CacheNotReady."""


class PolicySource(Generic[E]):
    _policies: Sequence[AdmissionPolicy[E]]  # what the hooks were made from
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
        """Static ones first, then by the names of the policies, and each with its bindings by their names. Raises
        Forbidden while nobody knows yet."""
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
