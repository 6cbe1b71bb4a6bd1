"""Static policies and bindings: without parameters, and bound within the manifests only."""

from __future__ import annotations

from functools import partial

from pilothouse.apiserver.admission.manifest.files import ManifestDocument, ManifestError
from pilothouse.apiserver.admission.manifest.source import Load
from pilothouse.apiserver.admission.policy.static import PolicyManifests
from pilothouse.kube.admission.manifests.loading import ManifestKind, load_manifests, manifest_scheme
from pilothouse.kube.admissionregistration.policies import (
    MutatingPolicyStrategy,
    PolicyStrategy,
    ValidatingPolicyStrategy,
)
from pilothouse.kube.admissionregistration.policy_bindings import (
    MutatingBindingStrategy,
    PolicyBindingStrategy,
    ValidatingBindingStrategy,
)
from pilothouse.kube.admissionregistration.strategy import STATIC_SUFFIX
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, name_of, part, text

_SCHEME = manifest_scheme("pkg/admission/plugin/policy/manifest/loader/validating_loader.go:35")


def _check_policy(kind: str, policy: Json, file: str) -> None:
    if part(policy, "spec").get("paramKind") is not None:
        reason = "spec.paramKind is not supported for static manifests"
        raise ManifestError(f"{kind} {quote(name_of(policy))}: {reason}")


def _check_binding(binding: Json, file: str) -> None:
    where, policy = f"binding {quote(name_of(binding))}", text(binding, "spec", "policyName")
    if not policy.endswith(STATIC_SUFFIX):
        raise ManifestError(f"{where}: spec.policyName {quote(policy)} must end with {quote(STATIC_SUFFIX)}")
    if part(binding, "spec").get("paramRef") is not None:
        raise ManifestError(f"{where}: spec.paramRef is not supported for static manifests")


def _load(policy: ManifestKind, binding: ManifestKind, documents: tuple[ManifestDocument, ...]) -> PolicyManifests:
    result = load_manifests(documents, _SCHEME, (policy, binding))
    policies, bindings = result[policy.kind], result[binding.kind]
    names = {name_of(item) for item in policies}
    for each in bindings:
        if (named := text(each, "spec", "policyName")) not in names:
            reason = f"references policy {quote(named)} which does not exist in the manifest directory"
            raise ManifestError(f"binding {quote(name_of(each))} {reason}")
    return PolicyManifests(tuple(policies), tuple(bindings))


def _loader(kind: str, policies: PolicyStrategy, bindings: PolicyBindingStrategy) -> Load[PolicyManifests]:
    policy = ManifestKind(kind, policies, partial(_check_policy, kind))
    return partial(_load, policy, ManifestKind(f"{kind}Binding", bindings, _check_binding))


LOAD_POLICIES = {
    "MutatingAdmissionPolicy": _loader("MutatingAdmissionPolicy", MutatingPolicyStrategy(), MutatingBindingStrategy()),
    "ValidatingAdmissionPolicy": _loader(
        "ValidatingAdmissionPolicy", ValidatingPolicyStrategy(), ValidatingBindingStrategy()
    ),
}
"""By the names of the plug-ins."""
