"""The order in which a cluster needs objects: each kind that others are judged by has its place.

Definitions come first, then namespaces, then what pods and claims refer to with the rules of access, then quotas, then
the parameters of policies with all else that is given, and policies last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import itemgetter
from typing import Any

from pilothouse.cli.offline.manifests import Manifest
from pilothouse.machinery.objects import Json

DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
NAMESPACE = ("", "Namespace")
QUOTA = ("", "ResourceQuota")
_PLACE: dict[tuple[str, str], int] = {
    DEFINITION: 1,
    NAMESPACE: 2,
    **{("", kind): 3 for kind in ("ServiceAccount", "LimitRange")},
    **{("rbac.authorization.k8s.io", kind): 3 for kind in ("ClusterRole", "Role")},
    **{("rbac.authorization.k8s.io", kind): 4 for kind in ("ClusterRoleBinding", "RoleBinding")},
    ("scheduling.k8s.io", "PriorityClass"): 3,
    ("storage.k8s.io", "StorageClass"): 3,
    ("node.k8s.io", "RuntimeClass"): 3,
    ("networking.k8s.io", "IngressClass"): 3,
    QUOTA: 5,
    **{("admissionregistration.k8s.io", f"{how}AdmissionPolicy"): 7 for how in ("Validating", "Mutating")},
    **{("admissionregistration.k8s.io", f"{how}AdmissionPolicyBinding"): 8 for how in ("Validating", "Mutating")},
}
_OTHERS = 6
_CALLS_OUT = frozenset(
    {
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("apiregistration.k8s.io", "APIService"),
    }
)
"""Never in force here: the server would ask others, which are not there."""


def in_order(given: Collection[Manifest], manifests: Collection[Manifest]) -> list[tuple[bool, Manifest]]:
    """Return what must be there before anything else can be judged: all that is given, and what others are judged by.

    Each comes with whether it goes before namespaces are made for the rest.
    """
    parameters = _parameter_kinds([*given, *manifests])
    placed = [(_place(manifest, parameters), manifest) for manifest in manifests]
    taken = [manifest for manifest in given if manifest.group_kind not in _CALLS_OUT]
    everything = [(_place(manifest, parameters) or _OTHERS, manifest) for manifest in taken]
    everything += [(place, manifest) for place, manifest in placed if place]
    everything.sort(key=itemgetter(0))
    return [(place <= _PLACE[NAMESPACE], manifest) for place, manifest in everything]


def _place(manifest: Manifest, parameters: set[tuple[str, str]]) -> int:
    """Return 0 for an object that nothing else is judged by."""
    return _PLACE.get(manifest.group_kind) or (_OTHERS if _full_kind(manifest.obj) in parameters else 0)


def _full_kind(obj: Json) -> tuple[str, str]:
    return str(obj.get("apiVersion")), str(obj.get("kind"))


def _parameter_kinds(manifests: Iterable[Manifest]) -> set[tuple[str, str]]:
    """Return the kinds of objects by which policies go."""
    specs: list[Any] = [manifest.obj.get("spec") for manifest in manifests if manifest.kind.endswith("AdmissionPolicy")]
    kinds = (spec.get("paramKind") for spec in specs if isinstance(spec, dict))
    return {_full_kind(kind) for kind in kinds if isinstance(kind, dict)}
