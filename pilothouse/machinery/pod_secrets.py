"""The names of the secrets that a pod's spec speaks of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.machinery.objects import Json

_CSI = ("controllerPublishSecretRef", "nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef")
_NAMING = frozenset(("secret", "secretKeyRef", "secretRef", *_CSI))


def pod_secret_names(spec: Json) -> set[str]:
    return {name for name in _names(spec) if name}


def _names(value: Any) -> Iterator[str]:
    """Wherever a pod's spec names a secret, it does so under one of a few keys."""
    if isinstance(value, list):
        for item in value:
            yield from _names(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in _NAMING and isinstance(inner, dict):
                yield inner.get("name") or inner.get("secretName") or ""
            elif key == "secretName" and isinstance(inner, str):
                yield inner
            elif key == "imagePullSecrets":
                yield from (secret.get("name") or "" for secret in inner or ())
            yield from _names(inner)
