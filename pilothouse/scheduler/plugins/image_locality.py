"""ImageLocality: nodes that have a pod's images already, the more the larger they are, but not all pods on one node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.plugins.interface import MAX_SCORE, Plugin

_LEAST, _MOST_PER_CONTAINER = 23 << 20, 1000 << 20
"""Bytes that make no difference yet, and beyond which more makes none."""


class ImageLocality(Plugin):
    name = "ImageLocality"

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        known = self.handle.cache.image_nodes
        wanted = [image for image in map(_normalized, _images(pod.spec)) if image in known] if known else []
        if not wanted:
            return None
        everywhere = len(self.handle.cache.nodes)
        spread = [(image, known[image] / everywhere) for image in wanted]
        most = _MOST_PER_CONTAINER * (len(pod.spec.get("initContainers") or ()) + len(pod.spec["containers"]))

        def score(node: NodeInfo) -> int:
            found = sum(int(node.images[image] * share) for image, share in spread if image in node.images)
            return MAX_SCORE * (min(max(found, _LEAST), most) - _LEAST) // (most - _LEAST)

        return [score(node) for node in nodes]


def _images(spec: Json) -> Iterator[str]:
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        yield container.get("image") or ""
    for volume in spec.get("volumes") or ():
        if "image" in volume:
            yield volume["image"].get("reference") or ""


def _normalized(image: str) -> str:
    """Return the image with its tag; none stands for latest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
