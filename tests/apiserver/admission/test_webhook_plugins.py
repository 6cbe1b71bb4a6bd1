"""What the webhook plugins do where a server would not come to: old configurations, caches that are empty, bugs."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any

import pytest

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.admission.matching import Matcher
from pilothouse.apiserver.admission.webhook.hooks import AdmissionWebhook, webhooks_of
from pilothouse.apiserver.admission.webhook.mutating import MutatingAdmissionWebhook
from pilothouse.apiserver.admission.webhook.validating import ValidatingAdmissionWebhook
from pilothouse.apiserver.audit.annotations import METADATA, REQUEST, Annotations
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.storage.errors import CacheNotReady
from pilothouse.apiserver.webhook.endpoint import WebhookCallFailed, refused
from pilothouse.machinery.errors import BadRequest, Forbidden
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.server_errors import InternalError, Timeout

RULE = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}


def hooks(*names: str, **fields: Any) -> tuple[AdmissionWebhook, ...]:
    each = {"clientConfig": {}, "rules": [RULE], "namespaceSelector": {}, "objectSelector": {}, "sideEffects": "None"}
    webhooks = [{**each, "name": name, "admissionReviewVersions": ["v1"], **fields} for name in names]
    return webhooks_of({"metadata": {"name": "c"}, "webhooks": webhooks})


class Client:
    """Answers what it is told, or falls over."""

    def __init__(self, response: Json | Exception) -> None:
        self._response = response
        self.asked: list[Json] = []
        self.timeouts: list[float] = []

    async def post(self, config: Json, body: Json, *, timeout: float) -> Json:
        self.asked.append(body)
        self.timeouts.append(timeout)
        if isinstance(self._response, Exception):
            raise self._response
        uid = body["request"]["uid"]
        return {"kind": body["kind"], "apiVersion": body["apiVersion"], "response": {"uid": uid, **self._response}}


def parts(client: Client, *webhooks: AdmissionWebhook) -> Any:
    async def get_webhooks() -> Sequence[AdmissionWebhook]:
        return webhooks

    async def no_namespace(name: str) -> Json | None:
        return None

    return get_webhooks, Matcher(no_namespace), AlwaysAllow(), client


def write(**rest: Any) -> Attributes:
    kind, resource = GroupVersionKind("", "v1", "Any"), GroupVersionResource("", "v1", "anys")
    return Attributes(Operation.CREATE, kind, resource, "", "n", "x", User("u"), **{"obj": {"metadata": {}}, **rest})


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_a_webhook_with_side_effects_is_not_asked_in_a_dry_run(policy: str) -> None:
    client = Client({"allowed": True})
    old = hooks("a.b.c", sideEffects="Unknown", failurePolicy=policy)
    for run in (
        ValidatingAdmissionWebhook(*parts(client, *old)).validate,
        MutatingAdmissionWebhook(*parts(client, *old)).admit,
    ):
        with pytest.raises(BadRequest, match=r'admission webhook "a\.b\.c" does not support dry run'):
            await run(write(dry_run=True))
        assert not client.asked
        await run(write())
        assert client.asked.pop()


async def test_a_webhook_is_given_no_more_time_than_the_request_has_left() -> None:
    client = Client({"allowed": True})
    plugin = ValidatingAdmissionWebhook(*parts(client, *hooks("a.b.c", timeoutSeconds=20)))
    for left in (10, 90):
        await plugin.validate(write(deadline=time.monotonic() + left))
    assert [round(timeout) for timeout in client.timeouts] == [10, 20]


async def test_a_request_without_time_left_is_late_even_if_failures_are_ignored() -> None:
    failing = Client(WebhookCallFailed("context deadline exceeded"))
    plugin = ValidatingAdmissionWebhook(*parts(failing, *hooks("a.b.c", failurePolicy="Ignore")))
    with pytest.raises(Timeout, match="Timeout: request did not complete within requested timeout"):
        await plugin.validate(write(deadline=time.monotonic()))


@pytest.mark.parametrize("plugin", [ValidatingAdmissionWebhook, MutatingAdmissionWebhook])
async def test_the_log_has_nothing_of_what_a_webhook_answered(plugin: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A redirect or an answer of another server behind the webhook could else be read in the log: CVE-2020-8561."""
    failing = Client(refused(500, "text/plain", b"private words"))
    made = plugin(*parts(failing, *hooks("a.b.c", failurePolicy="Ignore")))
    with caplog.at_level(logging.DEBUG):
        await (made.validate if plugin is ValidatingAdmissionWebhook else made.admit)(write())
    assert 'failing open: failed calling webhook "a.b.c": status code 500' in caplog.text
    assert "private words" not in caplog.text


async def test_nothing_is_admitted_while_nobody_knows_which_webhooks_there_are() -> None:
    async def not_ready() -> Sequence[AdmissionWebhook]:
        raise CacheNotReady(None, retry_after=1)

    _, *others = parts(Client({}))
    with pytest.raises(Forbidden, match='anys "x" is forbidden: not yet ready to handle request'):
        await MutatingAdmissionWebhook(not_ready, *others).admit(write())


async def test_a_bug_in_one_call_refuses_the_write_and_leaves_no_other_call_behind() -> None:
    client = Client(RuntimeError("odd"))
    with pytest.raises(InternalError, match=r"ValidatingAdmissionWebhook/a\.b\.c has panicked: odd"):
        await ValidatingAdmissionWebhook(*parts(client, *hooks("a.b.c", "d.e.f"))).validate(write())
    assert len(client.asked) == 2


async def test_a_webhook_that_speaks_no_known_version_cannot_be_asked() -> None:
    client = Client({})
    unknown = hooks("a.b.c", admissionReviewVersions=["v9"])
    with pytest.raises(InternalError, match="webhook does not accept known AdmissionReview versions"):
        await ValidatingAdmissionWebhook(*parts(client, *unknown)).validate(write())


async def test_the_audit_log_is_told_what_webhooks_say_and_do() -> None:
    said = Annotations()
    plugin = MutatingAdmissionWebhook(
        *parts(Client({"allowed": True, "auditAnnotations": {"k": "v"}}), *hooks("a.b.c"))
    )
    await plugin.admit(write(annotate=said.add))
    mutation = '{"configuration":"c","webhook":"a.b.c","mutated":false}'
    assert said.at(METADATA) == {"a.b.c/k": "v", "mutation.webhook.admission.k8s.io/round_0_index_0": mutation}


async def test_the_audit_log_is_told_which_webhooks_were_not_waited_for() -> None:
    said, client = Annotations(), Client(WebhookCallFailed("gone"))
    open_hooks = hooks("a.b.c", "d.e.f", failurePolicy="Ignore")
    await ValidatingAdmissionWebhook(*parts(client, *open_hooks)).validate(write(annotate=said.add))
    await MutatingAdmissionWebhook(*parts(client, open_hooks[0])).admit(write(annotate=said.add))
    failed = "failed-open.{}.webhook.admission.k8s.io/round_0_index_{}"
    told = said.at(METADATA)
    assert told[failed.format("validating", 0)] == "a.b.c"
    assert told[failed.format("validating", 1)] == "d.e.f"
    assert told[failed.format("mutation", 0)] == "a.b.c"
    assert not said.at(REQUEST)


def test_webhooks_with_one_name_are_told_apart() -> None:
    assert [hook.uid for hook in hooks("a", "b", "a")] == ["c/a/0", "c/b/0", "c/a/1"]
