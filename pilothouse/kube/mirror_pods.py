"""Mirror pods: API objects for static pods of a kubelet."""

from __future__ import annotations

from pilothouse.machinery.objects import Json, annotations_of

MIRROR_POD = "kubernetes.io/config.mirror"


def is_mirror_pod(pod: Json) -> bool:
    return MIRROR_POD in annotations_of(pod)
