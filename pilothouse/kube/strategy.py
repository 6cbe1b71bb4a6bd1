"""The rules that all built-in kinds share, on top of the generic ones."""

from __future__ import annotations

from pilothouse.apiserver.registry.finalizers_and_grace import FOREGROUND, ORPHAN
from pilothouse.apiserver.registry.strategy import Strategy
from pilothouse.machinery.field import Errors, Path, invalid, root
from pilothouse.machinery.objects import Json, metadata

KUBERNETES_FINALIZER = "kubernetes"

_STANDARD_FINALIZERS = (KUBERNETES_FINALIZER, ORPHAN, FOREGROUND)


class KubeStrategy(Strategy):
    """Finalizers of built-in kinds are either known ones or fully qualified."""

    def validate_metadata(self, obj: Json) -> Errors:
        yield from super().validate_metadata(obj)
        for position, name in enumerate(metadata(obj).get("finalizers") or ()):
            if not _is_known_or_qualified(name):
                yield from validate_kube_finalizer(name, root("metadata", "finalizers").index(position))


def validate_kube_finalizer(name: str, path: Path) -> Errors:
    if not _is_known_or_qualified(name):
        yield invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")


def _is_known_or_qualified(name: str) -> bool:
    return "/" in name or name in _STANDARD_FINALIZERS
