"""VolumeAttachments: the desired and actual attachment of a volume to a node."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.core.persistentvolumes.sources import source_of
from pilothouse.kube.core.persistentvolumes.validation import validate_inline_spec
from pilothouse.kube.core.pods.defaults.resources import round_up
from pilothouse.kube.core.pods.defaults.volumes import default_volume
from pilothouse.kube.core.pods.internal_form import internal_form
from pilothouse.kube.core.pods.validation.network_volumes import validate_csi_driver_name
from pilothouse.kube.storage.storageclasses import GROUP, size_of, validate_driver
from pilothouse.kube.strategy import SeparateStatusStrategy, StatusSubresource, gated
from pilothouse.kube.validation.fields import dns_subdomain
from pilothouse.machinery import version_rules
from pilothouse.machinery.field import Errors, Path, declared, forbidden, invalid, required, root, too_long
from pilothouse.machinery.objects import Json, part, text
from pilothouse.machinery.validation.immutable import validate_declared_immutable
from pilothouse.machinery.validation.pattern_format import inclusive_range_error

_MAX_METADATA = 256 * 1024
_MAX_MESSAGE = 1024
_MAX_INT32 = 2**31 - 1
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class VolumeAttachmentStrategy(SeparateStatusStrategy):
    namespaced = False
    allow_unconditional_update = False

    def default(self, obj: Json) -> None:
        inline = part(obj, "spec", "source", "inlineVolumeSpec")
        round_up(inline.get("capacity"))
        default_volume(source_of(inline))

    def prepare_for_create(self, obj: Json) -> None:
        obj["status"] = {"attached": False}

    def validate(self, obj: Json) -> Errors:
        return self._validate(obj, is_update=False)

    def _validate(self, obj: Json, *, is_update: bool) -> Errors:
        yield from self.validate_metadata(obj)
        spec = part(obj, "spec")
        path = root("spec")
        attacher, attacher_path = text(spec, "attacher"), path.child("attacher")
        aligned = version_rules.holds("AlignedMessages")
        check = validate_csi_driver_name if aligned else validate_driver
        yield from (declared(error, error.detail) for error in check(attacher, attacher_path))
        source = part(spec, "source")
        source_path = path.child("source")
        name, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
        if name is None and inline is None:
            yield required(source_path, _ONE_SOURCE)
        elif name is not None and inline is not None:
            yield forbidden(source_path, _ONE_SOURCE)
        elif name == "":
            yield required(source_path.child("persistentVolumeName"), "must specify non empty persistentVolumeName")
        elif inline is not None:
            yield from validate_inline_spec(inline, source_path.child("inlineVolumeSpec"))
        yield from dns_subdomain(text(spec, "nodeName"), path.child("nodeName"))
        yield from _validate_status(part(obj, "status"), root("status"))
        if not (aligned or is_update):
            yield from validate_csi_driver_name(attacher, attacher_path)
        name = part(obj, "spec", "source").get("persistentVolumeName")
        if name is not None:
            yield from dns_subdomain(name, root("spec.source.persistentVolumeName"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self._validate(obj, is_update=True)
        yield from validate_declared_immutable(_shown(part(obj, "spec")), _shown(part(old, "spec")), root("spec"))


class VolumeAttachmentStatusStrategy(StatusSubresource, VolumeAttachmentStrategy):
    reset_fields = ("metadata", "spec")
    resets_metadata = True
    gated_status_fields = tuple(
        gated("MutableCSINodeAllocatableCount", f"status.{error}.errorCode") for error in ("attachError", "detachError")
    )


def _shown(spec: Json) -> Json:
    """Return the spec as upstream's messages print it."""
    source = part(spec, "source")
    return {
        "Attacher": text(spec, "attacher"),
        "Source": {
            "PersistentVolumeName": source.get("persistentVolumeName"),
            "InlineVolumeSpec": internal_form("PersistentVolumeSpec", source.get("inlineVolumeSpec")),
        },
        "NodeName": text(spec, "nodeName"),
    }


def _validate_status(status: Json, path: Path) -> Errors:
    if size_of(part(status, "attachmentMetadata")) > _MAX_METADATA:
        yield too_long(path.child("attachmentMetadata"), _MAX_METADATA)
    for field in ("attachError", "detachError"):
        yield from _validate_error(part(status, field), path.child(field))


def _validate_error(error: Json, path: Path) -> Errors:
    if len(text(error, "message").encode()) > _MAX_MESSAGE:
        # Upstream's message contains the other limit.
        limit = _MAX_MESSAGE if version_rules.holds("SizeOfVolumeErrors") else _MAX_METADATA
        yield too_long(path.child("message"), limit)
    code = error.get("errorCode")
    if code is not None and code < 0:
        yield invalid(path.child("errorCode"), code, inclusive_range_error(0, _MAX_INT32))


_SPEC = "io.k8s.api.storage.v1.VolumeAttachmentSpec"

VOLUME_ATTACHMENTS = Resource(
    names=Names("volumeattachments", kind="VolumeAttachment"),
    strategy=VolumeAttachmentStrategy(),
    status=VolumeAttachmentStatusStrategy(),
    group=GROUP,
    returns_deleted_object=True,
    columns=[
        NAME,
        Column("Attacher", lambda obj: text(obj, "spec", "attacher"), format="name", documented=(_SPEC, "attacher")),
        Column(
            "PV",
            lambda obj: text(obj, "spec", "source", "persistentVolumeName"),
            documented=("io.k8s.api.storage.v1.VolumeAttachmentSource", "persistentVolumeName"),
        ),
        Column("Node", lambda obj: text(obj, "spec", "nodeName"), documented=(_SPEC, "nodeName")),
        Column(
            "Attached",
            lambda obj: bool(part(obj, "status").get("attached")),
            type="boolean",
            documented=("io.k8s.api.storage.v1.VolumeAttachmentStatus", "attached"),
        ),
        AGE,
    ],
)
