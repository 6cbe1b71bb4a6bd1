"""Static policies from files, compiled once per change of the files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from pilothouse.apiserver.admission.policy.hooks import AdmissionPolicy, Hook, PolicyBinding
from pilothouse.apiserver.admission.policy.source import bound_hooks
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class PolicyManifests:
    """Static policies and bindings, sorted by name."""

    policies: tuple[Json, ...] = ()
    bindings: tuple[Json, ...] = ()


GetPolicyManifests: TypeAlias = Callable[[], PolicyManifests]
"""Return the manifests; the same object until a change."""

_NONE = PolicyManifests()


def no_policy_manifests() -> PolicyManifests:
    return _NONE


class StaticPolicies(Generic[E]):
    def __init__(self, get: GetPolicyManifests, compile: Callable[[Json], E]) -> None:
        self._get, self._compile = get, compile
        self._of = _NONE
        self._hooks: Sequence[Hook[E]] = ()

    def __call__(self) -> Sequence[Hook[E]]:
        manifests = self._get()
        if manifests is not self._of:
            policies = [AdmissionPolicy(policy, self._compile) for policy in manifests.policies]
            self._hooks = bound_hooks(policies, [PolicyBinding.of(binding) for binding in manifests.bindings])
            self._of = manifests
        return self._hooks
