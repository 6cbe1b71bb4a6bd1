"""Defaults of volumes, by source. A volume without source becomes an emptyDir."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pilothouse.apiserver.server.features import enabled
from pilothouse.kube.core.pods.defaults.containers import default_field_reference, pull_policy
from pilothouse.kube.core.pods.defaults.resources import round_up_requirements
from pilothouse.machinery.objects import Json

_READABLE = 0o644
_HOUR = 3600


def default_volume(volume: Json) -> None:
    # Fast path: a volume usually has a name and one source.
    if len(volume) < 2 and "name" in volume:
        volume["emptyDir"] = {}
        return
    for name, source in volume.items():
        if source is not None and (fill := _SOURCES.get(name)):
            fill(source)


def default_claim_spec(spec: Json) -> None:
    """Apply the defaults of a PersistentVolumeClaim's spec."""
    spec.setdefault("volumeMode", "Filesystem")
    round_up_requirements(spec.get("resources"))


def _fill(defaults: Json, source: Json) -> None:
    for name, value in defaults.items():
        if source.get(name) is None:
            source[name] = value


def _default_downward_api(source: Json) -> None:
    _fill({"defaultMode": _READABLE}, source)
    _default_downward_files(source)


def _default_downward_files(source: Json) -> None:
    for file in source.get("items") or ():
        default_field_reference(file.get("fieldRef"))


def _default_projected(source: Json) -> None:
    _fill({"defaultMode": _READABLE}, source)
    for projection in source.get("sources") or ():
        if downward := projection.get("downwardAPI"):
            _default_downward_files(downward)
        if (token := projection.get("serviceAccountToken")) is not None:
            _fill({"expirationSeconds": _HOUR}, token)


def _default_ephemeral(source: Json) -> None:
    if (template := source.get("volumeClaimTemplate")) is not None:
        default_claim_spec(template.setdefault("spec", {}))


def _default_image(source: Json) -> None:
    if enabled("ImageVolume"):
        _fill({"pullPolicy": pull_policy(source.get("reference") or "")}, source)


_SOURCES: dict[str, Callable[[Json], None]] = {
    "hostPath": partial(_fill, {"type": ""}),
    "secret": partial(_fill, {"defaultMode": _READABLE}),
    "configMap": partial(_fill, {"defaultMode": _READABLE}),
    "iscsi": partial(_fill, {"iscsiInterface": "default"}),
    "rbd": partial(_fill, {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
    "azureDisk": partial(_fill, {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}),
    "scaleIO": partial(_fill, {"storageMode": "ThinProvisioned", "fsType": "xfs"}),
    "downwardAPI": _default_downward_api,
    "projected": _default_projected,
    "ephemeral": _default_ephemeral,
    "image": _default_image,
}
