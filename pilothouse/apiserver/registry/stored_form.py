"""The stored form of objects by type: fields that are dropped when stored, and fields that are stored but not shown.

Types are built on first use, which is too late for a read and too early for a server start. The few kinds with stored
fields that are not shown are therefore a table.
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
    """Return the codec of a resource. Objects without a Go type are stored unchanged, except for whole floats."""
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
    """Normalize numbers without a Go type: a whole number in float notation fails integer checks, but reads as an
    integer."""
    found = types.of(kind)
    stored: Json = printed_numbers(obj) if found is None else found.stored(obj)
    return stored


def _printed(kind: GroupVersionKind, obj: Json) -> Json:
    found = types.of(kind)
    return obj if found is None else found.printed(obj)
