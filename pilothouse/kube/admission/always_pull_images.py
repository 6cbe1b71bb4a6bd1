"""AlwaysPullImages: forces the image pull policy Always, so that a pod cannot use an image pulled by another pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.apiserver.admission.refusals import refused
from pilothouse.kube.admission.pods import spec_of_written_pod
from pilothouse.machinery.field import Path, not_supported, root
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError, aggregate

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


class _Pull(NamedTuple):
    holder: Json
    field: str
    path: Path


class AlwaysPullImages(Handler):
    name = "AlwaysPullImages"
    operations = (Operation.CREATE, Operation.UPDATE)

    async def admit(self, attributes: Attributes) -> None:
        for pull in _pulls(attributes):
            pull.holder[pull.field] = "Always"

    async def validate(self, attributes: Attributes) -> None:
        wrong = [pull for pull in _pulls(attributes) if pull.holder.get(pull.field) != "Always"]
        errors = [not_supported(pull.path, pull.holder.get(pull.field) or "", ["Always"]) for pull in wrong]
        if len(errors) == 1:
            raise refused(attributes, str(errors[0]))
        if errors:
            # Upstream returns an aggregate error instead of a Status; clients see an internal error.
            raise StatusError(aggregate(str(refused(attributes, str(error))) for error in errors))


def _pulls(attributes: Attributes) -> Iterator[_Pull]:
    """Yield the objects in the pod with an imagePullPolicy. Yield nothing if the write adds no image."""
    spec = spec_of_written_pod(attributes)
    if spec is None or (attributes.old is not None and _images(spec) <= _images(attributes.old.get("spec") or {})):
        return
    for kind in _CONTAINERS:
        for index, container in enumerate(spec.get(kind) or ()):
            yield _Pull(container, "imagePullPolicy", root("spec", kind).index(index).child("imagePullPolicy"))
    for index, volume in enumerate(spec.get("volumes") or ()):
        if (image := volume.get("image")) is not None:
            yield _Pull(image, "pullPolicy", root("spec", "volumes").index(index).child("image", "pullPolicy"))


def _images(spec: Json) -> set[str]:
    return {container.get("image") or "" for kind in _CONTAINERS for container in spec.get(kind) or ()}
