"""The source that a claim is filled from. An older and a newer field name it; they are kept alike."""

from __future__ import annotations

from pilothouse.apiserver.server.features import enabled
from pilothouse.machinery.objects import Json, text

_SHARED = ("apiGroup", "kind", "name")
_ALWAYS_ALLOWED = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def prepare_data_sources(spec: Json, old: Json | None) -> None:
    _drop_foreign_namespace(spec, old)
    _drop_unknown_source(spec, old)
    normalize_data_sources(spec)


def normalize_data_sources(spec: Json) -> None:
    """Fills the field that is missing from the one that is there."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = _shared(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = _shared(reference)


def _shared(reference: Json) -> Json:
    return {name: reference[name] for name in _SHARED if name in reference}


def _drop_foreign_namespace(spec: Json, old: Json | None) -> None:
    """Sources in other namespaces are there only where the gate is on, or the claim has a source already."""
    if enabled("CrossNamespaceVolumeDataSource"):
        return
    if text(spec, "dataSourceRef", "namespace") and (old or {}).get("dataSourceRef") is None:
        spec.pop("dataSourceRef")


def _drop_unknown_source(spec: Json, old: Json | None) -> None:
    """The older field never took anything but claims and snapshots, and ignored the rest."""
    before = old or {}
    if before.get("dataSource") is not None or before.get("dataSourceRef") is not None:
        return
    source = spec.get("dataSource")
    if source is None or spec.get("dataSourceRef") is not None:
        return
    if (source.get("apiGroup") or "", source.get("kind") or "") not in _ALWAYS_ALLOWED:
        spec.pop("dataSource")
