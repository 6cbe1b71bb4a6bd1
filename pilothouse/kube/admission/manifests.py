"""Static manifests of admission webhooks and policies, decoded strictly, defaulted and validated.

Names end with the static suffix. Webhooks are reached by URL, because Services may not be available yet. Policies
have no parameters, and bindings refer to policies of the manifests only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import orjson

from pilothouse.apiserver.admission.manifests import Load, ManifestDocument, ManifestError
from pilothouse.apiserver.admission.policy.source import PolicyManifests
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook, webhooks_of
from pilothouse.kube.admissionregistration import policy_bindings, webhook_configurations
from pilothouse.kube.admissionregistration.policies import (
    MutatingPolicyStrategy,
    PolicyStrategy,
    ValidatingPolicyStrategy,
)
from pilothouse.kube.admissionregistration.strategy import GROUP, STATIC_SUFFIX, AdmissionRegistrationStrategy
from pilothouse.machinery.codec.body_errors import BodyError, strict_error
from pilothouse.machinery.codec.decoder import Codec, DecodedBody, decode_any
from pilothouse.machinery.codec.scheme import Scheme
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, items, name_of, part, text
from pilothouse.machinery.status_error import aggregate

_LIST = "List"


def manifest_scheme(name: str) -> Scheme:
    """Return the scheme of a loader, under the file name in upstream's messages."""
    return Scheme(name, only=frozenset({GROUP}), unversioned=frozenset({_LIST, "Status"}))


@dataclass(frozen=True, slots=True)
class ManifestKind:
    """A kind of admissionregistration.k8s.io/v1 in the manifests of a plugin."""

    kind: str
    strategy: AdmissionRegistrationStrategy
    check: Callable[[Json, str], None]
    """Checks the rules for static objects. Raises ManifestError."""


_WEBHOOK_SCHEME = manifest_scheme("pkg/admission/plugin/webhook/manifest/loader/loader.go:41")
_ORIGIN = "manifest/"


def _check_webhooks(configuration: Json, file: str) -> None:
    for webhook in items(configuration, "webhooks"):
        where = f"webhook {quote(webhook['name'])} in {quote(name_of(configuration))} (file {quote(file)})"
        reached = webhook["clientConfig"]
        if reached.get("service") is not None:
            reason = "clientConfig.service is not supported for static manifests; use clientConfig.url instead"
            raise ManifestError(f"{where}: {reason}")
        if not reached.get("url"):
            raise ManifestError(f"{where}: clientConfig.url is required for static manifests")


def _load_webhooks(kind: ManifestKind, documents: tuple[ManifestDocument, ...]) -> tuple[AdmissionWebhook, ...]:
    configurations = load_manifests(documents, _WEBHOOK_SCHEME, (kind,))[kind.kind]
    return tuple(hook for configuration in configurations for hook in webhooks_of(configuration, origin=_ORIGIN))


LOAD_WEBHOOKS: dict[str, Load[tuple[AdmissionWebhook, ...]]] = {
    "MutatingAdmissionWebhook": partial(
        _load_webhooks,
        ManifestKind("MutatingWebhookConfiguration", webhook_configurations.MutatingWebhookStrategy(), _check_webhooks),
    ),
    "ValidatingAdmissionWebhook": partial(
        _load_webhooks,
        ManifestKind(
            "ValidatingWebhookConfiguration", webhook_configurations.ValidatingWebhookStrategy(), _check_webhooks
        ),
    ),
}
"""By the names of the plug-ins."""

_POLICY_SCHEME = manifest_scheme("pkg/admission/plugin/policy/manifest/loader/validating_loader.go:35")


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


def _load_policies(
    policy: ManifestKind, binding: ManifestKind, documents: tuple[ManifestDocument, ...]
) -> PolicyManifests:
    result = load_manifests(documents, _POLICY_SCHEME, (policy, binding))
    policies, bindings = result[policy.kind], result[binding.kind]
    names = {name_of(item) for item in policies}
    for each in bindings:
        if (named := text(each, "spec", "policyName")) not in names:
            reason = f"references policy {quote(named)} which does not exist in the manifest directory"
            raise ManifestError(f"binding {quote(name_of(each))} {reason}")
    return PolicyManifests(tuple(policies), tuple(bindings))


def _loader(
    kind: str, policies: PolicyStrategy, bindings: policy_bindings.PolicyBindingStrategy
) -> Load[PolicyManifests]:
    policy = ManifestKind(kind, policies, partial(_check_policy, kind))
    return partial(_load_policies, policy, ManifestKind(f"{kind}Binding", bindings, _check_binding))


LOAD_POLICIES = {
    "MutatingAdmissionPolicy": _loader(
        "MutatingAdmissionPolicy", MutatingPolicyStrategy(), policy_bindings.MutatingBindingStrategy()
    ),
    "ValidatingAdmissionPolicy": _loader(
        "ValidatingAdmissionPolicy", ValidatingPolicyStrategy(), policy_bindings.ValidatingBindingStrategy()
    ),
}
"""By the names of the plug-ins."""


def load_manifests(
    documents: Iterable[ManifestDocument], scheme: Scheme, kinds: Sequence[ManifestKind]
) -> dict[str, list[Json]]:
    """Return the objects by kind and name. Raise ManifestError."""
    loading = _Loading(scheme, {item.kind: item for item in kinds})
    for document in documents:
        try:
            loading.add(document.data, document.file)
        except (BodyError, ManifestError) as error:
            raise ManifestError(f"error loading {document.file}: {error}") from None
    return {kind: [result[name] for name in sorted(result)] for kind, result in loading.found.items()}


class _Loading:
    def __init__(self, scheme: Scheme, kinds: dict[str, ManifestKind]) -> None:
        self._scheme, self._kinds = scheme, kinds
        self.found: dict[str, dict[str, Json]] = {kind: {} for kind in kinds}
        self._files: dict[tuple[str, str], str] = {}  # first file of each (kind, name)

    def add(self, data: bytes, file: str) -> None:
        """Raises BodyError, ManifestError."""
        body = decode_any(data, codec=Codec.JSON if data.startswith(b"{") else Codec.YAML, scheme=self._scheme)
        if body.strict_errors:
            raise BodyError(strict_error(body.strict_errors))
        if body.gvk.kind == _LIST:
            for item in body.obj.get("items") or ():
                self._add_item(orjson.dumps(item), file)
            return
        kind = self._kinds.get(body.gvk.kind.removesuffix(_LIST))
        if kind is None or body.gvk.version != "v1":
            type = self._scheme.type_of(body.gvk)
            raise ManifestError(f"unsupported resource type *{type.node.go_type if type else body.gvk.kind}")
        objects = [*_objects(body)]
        for obj in objects:
            _complete(obj, kind)
        for obj in objects:
            name = name_of(obj)
            if not name:
                raise ManifestError(f"resource in file {quote(file)} must have a name")
            if not name.endswith(STATIC_SUFFIX):
                requirement = f"must have a name ending with {quote(STATIC_SUFFIX)}"
                raise ManifestError(f"{quote(name)} in file {quote(file)} {requirement}")
            if before := self._files.get((kind.kind, name)):
                origin = f"(previously seen in {quote(before)})"
                raise ManifestError(f"duplicate name {quote(name)} found in file {quote(file)} {origin}")
            kind.check(obj, file)
            self.found[kind.kind][name], self._files[kind.kind, name] = obj, file

    def _add_item(self, data: bytes, file: str) -> None:
        try:
            self.add(data, file)
        except BodyError as error:
            raise ManifestError(f"failed to decode list item: {error}") from None


def _objects(body: DecodedBody) -> Iterator[Json]:
    if not body.gvk.kind.endswith(_LIST):
        yield body.obj
        return
    for item in body.obj.get("items") or ():
        yield {**item, "metadata": item.get("metadata") or {}}


def _complete(obj: Json, kind: ManifestKind) -> None:
    kind.strategy.default(obj)
    if errors := [str(error) for error in kind.strategy.validate_configuration(obj)]:
        raise ManifestError(f"{kind.kind} {quote(name_of(obj))}: {aggregate(errors)}")
