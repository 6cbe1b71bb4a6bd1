"""Serving the scale subresource of built-in kinds."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import ServedResource
from pilothouse.apiserver.registry.scale import SCALE, SCALE_COLUMNS, ScaleStore, Scaling
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.kube.served import served

DEFAULT_SCALING = Scaling()


def served_scale(registry: RegistryStore, scaling: Scaling = DEFAULT_SCALING) -> ServedResource:
    scale = served(registry, ScaleStore(registry, scaling), subresource="scale", kind=SCALE)
    return replace(scale, columns=SCALE_COLUMNS)
