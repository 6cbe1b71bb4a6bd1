"""ImagePolicyWebhook: what it is asked, how long its answers hold, and what happens when it can not be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from admission_requests import pod, writing

from pilothouse.client.fake_clock import FakeClock
from pilothouse.client.rest.errors import ConnectionFailed
from pilothouse.kube.admission.images import ImagePolicyConfig, ImagePolicyWebhook
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.objects import Json


class Policy:
    """Allows what is on its list; gone, it answers nothing."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[Json] = []
        self.gone = False

    async def post(self, body: Json) -> Json:
        if self.gone:
            raise ConnectionFailed("connection refused")
        self.asked.append(body)
        images = [container["image"] for container in body["spec"]["containers"]]
        if all(image in self.allowed for image in images):
            return {"status": {"allowed": True, "auditAnnotations": {"seen": "yes"}}}
        return {"status": {"allowed": False, "reason": "not on the list"}}


def plugin(policy: Policy, clock: FakeClock | None = None, **config: Any) -> ImagePolicyWebhook:
    return ImagePolicyWebhook(ImagePolicyConfig(Path("/nowhere"), **config), policy, clock or FakeClock())


async def test_it_is_asked_about_every_image_and_the_annotations_that_are_meant_for_it() -> None:
    policy = Policy("i", "j")
    written = pod(initContainers=[{"name": "n", "image": "j"}])
    written["metadata"]["annotations"] = {"break.image-policy.k8s.io/x": "1", "other": "2"}
    told: dict[str, str] = {}
    await plugin(policy).validate(writing(written, annotate=lambda key, value, level="": told.update({key: value})))
    (review,) = policy.asked
    assert review["spec"] == {
        "containers": [{"image": "i"}, {"image": "j"}],
        "namespace": "default",
        "annotations": {"break.image-policy.k8s.io/x": "1"},
    }
    assert told == {"imagepolicywebhook.image-policy.k8s.io/seen": "yes"}


async def test_what_it_denies_is_refused_with_its_reason() -> None:
    with pytest.raises(Forbidden, match="image policy webhook backend denied one or more images: not on the list"):
        await plugin(Policy()).validate(writing(pod()))


async def test_its_answers_hold_for_a_while() -> None:
    policy, clock = Policy("i"), FakeClock()
    checking = plugin(policy, clock, allow_ttl=10.0)
    for _ in range(3):
        await checking.validate(writing(pod()))
    assert len(policy.asked) == 1
    clock.advance(11.0)
    await checking.validate(writing(pod()))
    assert len(policy.asked) == 2


async def test_when_it_can_not_be_asked_the_configuration_decides() -> None:
    policy = Policy()
    policy.gone = True
    with pytest.raises(Forbidden, match="connection refused"):
        await plugin(policy).validate(writing(pod()))
    written = pod()
    await plugin(policy, default_allow=True).validate(writing(written))
    assert written["metadata"]["annotations"] == {"alpha.image-policy.k8s.io/failed-open": "true"}


@pytest.mark.parametrize("config", [{}, {"imagePolicy": {"kubeConfigFile": "/x", "allowTTL": 3600}}])
def test_a_configuration_that_makes_no_sense_is_refused(config: Json) -> None:
    with pytest.raises(ValueError, match="ImagePolicyWebhook"):
        ImagePolicyConfig.parse(config)


def test_times_are_seconds_and_minus_one_turns_them_off() -> None:
    given = {"kubeConfigFile": "/x", "allowTTL": 60, "denyTTL": -1, "retryBackoff": 250}
    parsed = ImagePolicyConfig.parse({"imagePolicy": given})
    assert (parsed.allow_ttl, parsed.deny_ttl, parsed.retry_backoff) == (60.0, 0.0, 0.25)
