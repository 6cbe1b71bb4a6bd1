"""Admission plugins for container images.

AlwaysPullImages: forces the image pull policy Always, so that a pod cannot use an image pulled by another pod.
ImagePolicyWebhook: a webhook from a kubeconfig admits or rejects the images of each pod. Answers are cached. The
configuration decides about pods while the webhook is unreachable.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import orjson

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.apiserver.webhook.reviews import ReviewFailed, checked_status
from pilothouse.client.clock import REAL_CLOCK, Clock
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.kube.admission.pods import spec_of_written_pod
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import Path, not_supported, root
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, metadata
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


_PODS = GroupResource("", "pods")
_ANNOTATIONS = ".image-policy.k8s.io/"
_AUDIT = "imagepolicywebhook" + _ANNOTATIONS
_FAILED_OPEN = "alpha.image-policy.k8s.io/failed-open"
_KEPT, _KEPT_BYTES = 1024, 4 << 20


class ImageReviewWebhook(Protocol):
    async def post(self, body: Json) -> Json:
        """Raises StatusError, ConnectionFailed, InvalidResponse."""


@dataclass(frozen=True, slots=True)
class ImagePolicyConfig:
    """Times are in seconds; 0 keeps no answers."""

    kubeconfig: pathlib.Path
    allow_ttl: float = 300.0
    deny_ttl: float = 30.0
    retry_backoff: float = 0.5
    default_allow: bool = False

    @classmethod
    def parse(cls, config: Json) -> ImagePolicyConfig:
        """Raises ValueError."""
        settings: Json = config.get("imagePolicy") or {}
        if not settings.get("kubeConfigFile"):
            raise ValueError("ImagePolicyWebhook: no config specified")
        return cls(
            pathlib.Path(settings["kubeConfigFile"]),
            _seconds(settings.get("allowTTL") or 0, 1.0, default=300.0, limits=(1.0, 1800.0)),
            _seconds(settings.get("denyTTL") or 0, 1.0, default=30.0, limits=(1.0, 1800.0)),
            _seconds(settings.get("retryBackoff") or 0, 0.001, default=0.5, limits=(1e-9, 300.0)),
            bool(settings.get("defaultAllow")),
        )


def _seconds(value: int, unit: float, *, default: float, limits: tuple[float, float]) -> float:
    """Return a duration in seconds: -1 disables, 0 is the default. Raise ValueError."""
    if value in (-1, 0):
        return default if value == 0 else 0.0
    low, high = limits
    if not low <= value * unit <= high:
        raise ValueError(f"ImagePolicyWebhook: valid value is between {low}s and {high}s, got {value * unit}s")
    return value * unit


class ImagePolicyWebhook(Handler):
    name = "ImagePolicyWebhook"
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(self, config: ImagePolicyConfig, webhook: ImageReviewWebhook, clock: Clock = REAL_CLOCK) -> None:
        self._config = config
        self._webhook = webhook
        self._answers: BoundedCache[bytes, Json] = BoundedCache(entries=_KEPT, total_bytes=_KEPT_BYTES, now=clock.now)
        """Answers by review spec."""

    async def validate(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource != _PODS or attributes.obj is None:
            return
        if attributes.subresource not in ("", "ephemeralcontainers"):
            return
        status = await self._status(attributes, attributes.obj)
        if status is None:
            return
        for key, value in (status.get("auditAnnotations") or {}).items():
            attributes.annotate(_AUDIT + key, str(value))
        if not status.get("allowed"):
            reason = status.get("reason")
            denied = f"image policy webhook backend denied one or more images: {reason}"
            raise refused(attributes, denied if reason else "one or more images rejected by webhook backend")

    async def _status(self, attributes: Attributes, pod: Json) -> Json | None:
        """Return the status of the review, or None if the webhook is unreachable and the configuration admits pods."""
        spec = _review_spec(attributes, pod)
        key = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
        cached = self._answers.get(key)
        if cached:
            return cached
        review = {"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1alpha1", "metadata": {}, "spec": spec}
        try:
            answer = await self._webhook.post(review)
            status = checked_status(answer, allowed=bool, reason=str, auditAnnotations=dict)
        except (StatusError, ConnectionFailed, InvalidResponse, ReviewFailed) as error:
            if not self._config.default_allow:
                raise refused(attributes, str(error)) from error
            attributes.annotate(f"{_AUDIT}failed-open", "true")
            annotations = metadata(pod).get("annotations") or {}
            metadata(pod)["annotations"] = annotations | {_FAILED_OPEN: "true"}
            return None
        ttl = self._config.allow_ttl if status.get("allowed") else self._config.deny_ttl
        self._answers.put(key, status, size=512 + len(key) + 4 * len(orjson.dumps(status)), ttl=ttl)
        return status


def _review_spec(attributes: Attributes, pod: Json) -> Json:
    spec = pod.get("spec") or {}
    kinds = ("ephemeralContainers",) if attributes.subresource else ("containers", "initContainers")
    containers = [{"image": item.get("image") or ""} for kind in kinds for item in spec.get(kind) or ()]
    annotations = metadata(pod).get("annotations") or {}
    relevant = {key: value for key, value in annotations.items() if _ANNOTATIONS in key}
    asked: Json = {"containers": containers, "namespace": attributes.namespace}
    return asked | ({"annotations": relevant} if relevant else {})
