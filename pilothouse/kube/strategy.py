"""The rules that all built-in kinds share, on top of the generic ones."""

from __future__ import annotations

from pilothouse.apiserver.registry.finalizers_and_grace import FOREGROUND, ORPHAN
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.machinery.field import Errors, Path, invalid, root
from pilothouse.machinery.objects import Json, metadata

KUBERNETES_FINALIZER = "kubernetes"

_STANDARD_FINALIZERS = (KUBERNETES_FINALIZER, ORPHAN, FOREGROUND)


class KubeStrategy(Strategy):
    """Finalizers of built-in kinds are either known ones or fully qualified.

    The kinds that upstream checks by the generic rules only (leases, runtime classes, admission registration)
    have strategies that do not descend from this one.
    """

    def validate_metadata(self, obj: Json) -> Errors:
        yield from super().validate_metadata(obj)
        yield from _validate_finalizers(obj)

    def validate_metadata_update(self, obj: Json, old: Json) -> Errors:
        yield from super().validate_metadata_update(obj, old)
        yield from _validate_finalizers(obj)


def _validate_finalizers(obj: Json) -> Errors:
    for position, name in enumerate(metadata(obj).get("finalizers") or ()):
        yield from validate_kube_finalizer(name, root("metadata", "finalizers").index(position))


def validate_kube_finalizer(name: str, path: Path) -> Errors:
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        yield invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")
