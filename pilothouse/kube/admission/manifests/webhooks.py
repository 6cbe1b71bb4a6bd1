"""Static webhooks: reached by URL, because Services may not be available yet."""

from __future__ import annotations

from functools import partial

from pilothouse.apiserver.admission.manifest.files import ManifestDocument, ManifestError
from pilothouse.apiserver.admission.manifest.source import Load
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook, webhooks_of
from pilothouse.kube.admission.manifests.loading import ManifestKind, load_manifests, manifest_scheme
from pilothouse.kube.admissionregistration.webhook_configurations import (
    MutatingWebhookStrategy,
    ValidatingWebhookStrategy,
)
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, items, name_of

_SCHEME = manifest_scheme("pkg/admission/plugin/webhook/manifest/loader/loader.go:41")
_ORIGIN = "manifest/"


def _check(configuration: Json, file: str) -> None:
    for webhook in items(configuration, "webhooks"):
        where = f"webhook {quote(webhook['name'])} in {quote(name_of(configuration))} (file {quote(file)})"
        reached = webhook["clientConfig"]
        if reached.get("service") is not None:
            reason = "clientConfig.service is not supported for static manifests; use clientConfig.url instead"
            raise ManifestError(f"{where}: {reason}")
        if not reached.get("url"):
            raise ManifestError(f"{where}: clientConfig.url is required for static manifests")


def _load(kind: ManifestKind, documents: tuple[ManifestDocument, ...]) -> tuple[AdmissionWebhook, ...]:
    configurations = load_manifests(documents, _SCHEME, (kind,))[kind.kind]
    return tuple(hook for configuration in configurations for hook in webhooks_of(configuration, origin=_ORIGIN))


LOAD_WEBHOOKS: dict[str, Load[tuple[AdmissionWebhook, ...]]] = {
    "MutatingAdmissionWebhook": partial(
        _load, ManifestKind("MutatingWebhookConfiguration", MutatingWebhookStrategy(), _check)
    ),
    "ValidatingAdmissionWebhook": partial(
        _load, ManifestKind("ValidatingWebhookConfiguration", ValidatingWebhookStrategy(), _check)
    ),
}
"""By the names of the plug-ins."""
