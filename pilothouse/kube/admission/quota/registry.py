"""The evaluators by resource, for admission and for the quota controller."""

from __future__ import annotations

from pilothouse.controllers.resourcequota.evaluator import ExtendedResources
from pilothouse.kube.admission.quota import evaluators
from pilothouse.kube.admission.quota.pods import PodEvaluator
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.names import GroupResource

_IGNORED = frozenset(
    {
        GroupResource("", "bindings"),
        GroupResource("", "componentstatuses"),
        GroupResource("", "events"),
        GroupResource("events.k8s.io", "events"),
        GroupResource("authentication.k8s.io", "tokenreviews"),
        GroupResource("authentication.k8s.io", "selfsubjectreviews"),
        GroupResource("authorization.k8s.io", "subjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "localsubjectaccessreviews"),
        GroupResource("authorization.k8s.io", "selfsubjectrulesreviews"),
    }
)
"""Resources outside quotas: reviews without stored objects, and events."""

_OWN: dict[GroupResource, evaluators.AdmissionEvaluator] = {
    GroupResource("", "pods"): PodEvaluator(),
    GroupResource("", "services"): evaluators.ServiceEvaluator(),
    GroupResource("", "persistentvolumeclaims"): evaluators.ClaimEvaluator(),
}


RESOURCE_CLAIMS = GroupResource("resource.k8s.io", "resourceclaims")


def evaluator_of(
    resource: GroupResource, extended_resources: ExtendedResources
) -> evaluators.AdmissionEvaluator | None:
    """Return the evaluator of a resource, or None for resources outside quotas."""
    if resource in _IGNORED:
        return None
    if resource == RESOURCE_CLAIMS:
        return evaluators.DeviceClaimEvaluator(extended_resources)
    return _OWN.get(resource) or _counting(resource.group, resource.resource)


@bounded_cache(entries=1024, key_bytes=512)
def _counting(group: str, resource: str) -> evaluators.AdmissionEvaluator:
    return evaluators.CountEvaluator(GroupResource(group, resource))
