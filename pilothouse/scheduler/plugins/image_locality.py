"""ImageLocality: prefers nodes that have the pod's images, weighted by image size and by spread over the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cache.node_info import NodeInfo
from pilothouse.scheduler.cache.pod_info import PodInfo
from pilothouse.scheduler.plugins.interface import MAX_SCORE, Plugin

_LEAST, _MOST_PER_CONTAINER = 23 << 20, 1000 << 20
"""Thresholds in bytes: below the first, images score 0; above the second, the score is maximal."""


class ImageLocality(Plugin):
    name = "ImageLocality"

    def score(self, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Sequence[int] | None:
        image_nodes = self.handle.cache.image_nodes
        images = [image for image in map(_normalized, _images(pod.spec)) if image in image_nodes] if image_nodes else []
        if not images:
            return None
        everywhere = len(self.handle.cache.nodes)
        spread = [(image, image_nodes[image] / everywhere) for image in images]
        most = _MOST_PER_CONTAINER * (len(pod.spec.get("initContainers") or ()) + len(pod.spec["containers"]))

        def score(node: NodeInfo) -> int:
            size = sum(int(node.images[image] * share) for image, share in spread if image in node.images)
            return MAX_SCORE * (min(max(size, _LEAST), most) - _LEAST) // (most - _LEAST)

        return [score(node) for node in nodes]


def _images(spec: Json) -> Iterator[str]:
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        yield container.get("image") or ""
    for volume in spec.get("volumes") or ():
        if "image" in volume:
            yield volume["image"].get("reference") or ""


def _normalized(image: str) -> str:
    """Return the image with a tag; the default tag is latest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
