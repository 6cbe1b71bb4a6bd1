"""The API versions that kube-apiserver v1.36 knows by name. Those that are not stable are off there by default."""

from __future__ import annotations

_NAMED = """
    admission.k8s.io v1 v1beta1
    admissionregistration.k8s.io v1 v1beta1 v1alpha1
    apiextensions.k8s.io v1 v1beta1
    apiregistration.k8s.io v1 v1beta1
    apps v1 v1beta2 v1beta1
    authentication.k8s.io v1 v1beta1 v1alpha1
    authorization.k8s.io v1 v1beta1
    autoscaling v2 v1
    batch v1 v1beta1
    certificates.k8s.io v1 v1beta1 v1alpha1
    coordination.k8s.io v1 v1beta1 v1alpha2
    discovery.k8s.io v1 v1beta1
    events.k8s.io v1 v1beta1
    extensions v1beta1
    flowcontrol.apiserver.k8s.io v1 v1beta3 v1beta2 v1beta1
    imagepolicy.k8s.io v1alpha1
    internal.apiserver.k8s.io v1alpha1
    networking.k8s.io v1 v1beta1
    node.k8s.io v1 v1beta1
    policy v1 v1beta1
    rbac.authorization.k8s.io v1 v1beta1 v1alpha1
    resource.k8s.io v1 v1beta2 v1beta1 v1alpha3
    scheduling.k8s.io v1 v1beta1 v1alpha2
    storage.k8s.io v1 v1beta1 v1alpha1
    storagemigration.k8s.io v1beta1
"""

_ROWS = [line.split() for line in _NAMED.strip().splitlines()]

REGISTERED: dict[str, frozenset[str]] = {"": frozenset({"v1"})} | {
    group: frozenset(versions) for group, *versions in _ROWS
}
"""The versions of each group."""
