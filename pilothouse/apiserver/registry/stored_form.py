"""How objects are stored by their type: what the store does not keep of them, and what it keeps that is not shown.

Types are made when first asked for, which is too late for a read and too early when a server starts: the few kinds of
which more is stored than shown are a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.storage.object import ObjectCodec
from pilothouse.machinery.codec.json import printed_numbers
from pilothouse.machinery.names import GroupKind, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types

KEEPS_RAW_TEXT = frozenset(
    {
        GroupKind("apps", "ControllerRevision"),
        GroupKind("resource.k8s.io", "DeviceClass"),
        GroupKind("resource.k8s.io", "ResourceClaim"),
        GroupKind("resource.k8s.io", "ResourceClaimTemplate"),
    }
)
KEEPS_EMPTY_BYTES = frozenset(
    {
        GroupKind("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        GroupKind("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        GroupKind("certificates.k8s.io", "CertificateSigningRequest"),
    }
)


def codec_of(resource: Resource, empty: Callable[[], Json], on_read: Callable[[Json], None] | None) -> ObjectCodec:
    """Return the codec of a resource. What has no Go type is stored as it is, but for whole floats."""
    kind = resource.kind

    def zero_value() -> Json:
        content = empty()
        return content | {name: {**own, **content.get(name, {})} for name, own in resource.zero_value.items()}

    codec = ObjectCodec(
        kind.kind,
        kind.api_version,
        resource.fields_of,
        zero_value,
        on_read,
        stored=lambda obj: _stored(kind, obj),
        from_older=resource.from_older,
    )
    if kind.group_kind in KEEPS_EMPTY_BYTES:
        return replace(codec, printed=lambda obj: _printed(kind, obj))
    if kind.group_kind in KEEPS_RAW_TEXT and (found := types.of(kind)) is not None:
        return replace(codec, raw=found.raw_fields)
    return codec


def _stored(kind: GroupVersionKind, obj: Json) -> Json:
    """A number without a Go type that was not written as an integer is none for those who check it, and one for those
    who read it."""
    found = types.of(kind)
    stored: Json = printed_numbers(obj) if found is None else found.stored(obj)
    return stored


def _printed(kind: GroupVersionKind, obj: Json) -> Json:
    found = types.of(kind)
    return obj if found is None else found.printed(obj)
