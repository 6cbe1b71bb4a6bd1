"""Mirror pods: those that a kubelet runs by itself, and only shows here."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, annotations_of

MIRROR_POD = "kubernetes.io/config.mirror"


def is_mirror_pod(pod: Json) -> bool:
    return MIRROR_POD in annotations_of(pod)
