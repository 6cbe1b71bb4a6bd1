"""The stored form of objects: keys in the store, fields that are dropped when stored, and fields that are stored but
not shown.

Keys are upstream's, so that kube-apiserver can read our stores:
/registry/configmaps/default/web        /registry/namespaces/default

Types are built on first use, which is too late for a read and too early for a server start. The few kinds with stored
fields that are not shown are therefore a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pilothouse.apiserver.registry.resource import Resource
from pilothouse.apiserver.storage.object import ObjectCodec
from pilothouse.machinery.codec.json import printed_numbers
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import BadRequest
from pilothouse.machinery.names import GroupKind, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.schema import types
from pilothouse.machinery.validation.names import is_valid_path_segment_name


@dataclass(frozen=True, slots=True)
class Keys:
    prefix: str
    """Ends with a slash."""
    namespaced: bool
    root: str = ""
    """The part of the prefix that all resources share."""

    def object(self, namespace: str, name: str) -> str:
        """Return the key of an object. Raises BadRequest for names that would escape their prefix."""
        if self.namespaced and not namespace:
            raise BadRequest("Namespace parameter required.")
        if not name:
            raise BadRequest("Name parameter required.")
        problems = is_valid_path_segment_name(name)
        if problems:
            raise BadRequest(f"Name parameter invalid: {_quote(name)}: {';'.join(problems)}")
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else self.prefix + name

    def names(self, key: str) -> tuple[str, str]:
        """Return the namespace ("" if cluster-scoped) and the name in a key."""
        namespace, _, name = key.removeprefix(self.prefix).rpartition("/")
        return namespace, name

    def in_messages(self, key: str, *, dry_run: bool) -> str:
        """Return the key that error messages show. Upstream checks a dry run before the root is added."""
        return key.removeprefix(self.root) if dry_run else key

    def collection(self, namespace: str) -> str:
        return f"{self.prefix}{namespace}/" if self.namespaced and namespace else self.prefix


def _quote(name: str) -> str:
    return f'"{name}"'


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
