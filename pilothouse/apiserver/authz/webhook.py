"""The webhook authorizer: calls the webhook, caches its decisions, and reports metrics under upstream's names.

The configuration defines the decision for failed calls.
"""

from __future__ import annotations

import time
from dataclasses import field
from typing import Protocol

import orjson

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision, Rules
from pilothouse.apiserver.cel.match_conditions import MatchFailed
from pilothouse.apiserver.offload import offload_by_size
from pilothouse.apiserver.tallies import REGISTRY, CounterTally, HistogramTally
from pilothouse.apiserver.webhook.reviews import ReviewFailed, ReviewWebhook, checked_status
from pilothouse.machinery.bounded_cache import BoundedCache
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors import fields, labels
from pilothouse.machinery.selectors.requirement import InvalidSelector, Operator

EVALUATIONS = CounterTally(
    "apiserver_authorization_webhook_evaluations",
    "Calls to authorization webhooks, by result: success, timeout, error or canceled.",
    ("name", "result"),
    registry=REGISTRY,
)
DURATION = HistogramTally(
    "apiserver_authorization_webhook_duration_seconds",
    "Seconds that calls to authorization webhooks took.",
    ("name", "result"),
    bounds=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
    registry=REGISTRY,
)
FAIL_OPEN = CounterTally(
    "apiserver_authorization_webhook_evaluations_fail_open",
    "Calls to authorization webhooks that failed, after which the others decided.",
    ("name", "result"),
    registry=REGISTRY,
)
EXCLUSIONS = CounterTally(
    "apiserver_authorization_match_condition_exclusions",
    "Requests that a match condition kept from an authorizer.",
    ("type", "name"),
    registry=REGISTRY,
)
MATCH_FAILURES = CounterTally(
    "apiserver_authorization_match_condition_evaluation_errors",
    "Requests of which a match condition could not be evaluated.",
    ("type", "name"),
    registry=REGISTRY,
)


_REMEMBERED, _REMEMBERED_BYTES = 8192, 16 << 20
_LONGEST_REMEMBERED = 10_000
"""Maximum client-controlled bytes of a cached review; larger reviews would fill the memory."""
_NO_OPINION = Answer(Decision.NO_OPINION)
_BOTH = "webhook subject access review returned both allow and deny response"


class Conditions(Protocol):
    async def match(self, spec: Json) -> bool:
        """Return whether to call the webhook. Raises MatchFailed."""


class NoConditions:
    async def match(self, spec: Json) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class WebhookConfig:
    name: str
    version: str = "v1"
    """Version of the SubjectAccessReview."""
    authorized_ttl: float = 300.0
    unauthorized_ttl: float = 30.0
    on_error: Decision = Decision.NO_OPINION
    conditions: Conditions = field(default_factory=NoConditions)


class WebhookAuthorizer:
    def __init__(self, webhook: ReviewWebhook, config: WebhookConfig) -> None:
        self._webhook = webhook
        self._config = config
        self._answers: BoundedCache[bytes, Answer] = BoundedCache(entries=_REMEMBERED, total_bytes=_REMEMBERED_BYTES)

    async def authorize(self, attributes: Attributes) -> Answer:
        size = len(attributes.field_selector) + len(attributes.label_selector)
        spec = await offload_by_size(size, review_spec, attributes)
        try:
            if not await self._config.conditions.match(spec):
                EXCLUSIONS.inc(("Webhook", self._config.name))
                return _NO_OPINION
        except MatchFailed as error:
            MATCH_FAILURES.inc(("Webhook", self._config.name))
            return Answer(self._config.on_error, error=str(error))
        key = orjson.dumps(spec)
        return self._answers.get(key) or await self._ask(key, spec, attributes)

    async def rules_for(self, user: User, namespace: str) -> Rules:
        return Rules(incomplete=True, error="webhook authorizer does not support user rule resolution")

    async def _ask(self, key: bytes, spec: Json, attributes: Attributes) -> Answer:
        review = {"kind": "SubjectAccessReview", "apiVersion": f"authorization.k8s.io/{self._config.version}"}
        sent = review | {"metadata": {}, "spec": _in_version(spec, self._config.version), "status": {"allowed": False}}
        start, result = time.perf_counter(), "canceled"
        try:
            answered = await self._webhook.review(sent)
            status = checked_status(answered, allowed=bool, denied=bool, reason=str)
            result = "success"
        except ReviewFailed as error:
            result = "timeout" if error.timed_out else "error"
            if self._config.on_error is Decision.NO_OPINION:
                FAIL_OPEN.inc((self._config.name, result))
            return Answer(self._config.on_error, error=str(error))
        finally:
            EVALUATIONS.inc((self._config.name, result))
            DURATION.observe((self._config.name, result), time.perf_counter() - start)
        answer = _answer(status)
        chosen = (
            *(attributes.namespace, attributes.verb, attributes.group, attributes.version),
            *(attributes.resource, attributes.subresource, attributes.name, attributes.path),
        )
        if sum(map(len, chosen)) < _LONGEST_REMEMBERED:
            config, allowed = self._config, answer.decision is Decision.ALLOW
            ttl = config.authorized_ttl if allowed else config.unauthorized_ttl
            self._answers.put(key, answer, size=256 + len(key) + len(answer.reason) + len(answer.error), ttl=ttl)
        return answer


def _answer(status: Json) -> Answer:
    reason: str = status.get("reason") or ""
    if status.get("denied"):
        return Answer(Decision.DENY, reason, _BOTH if status.get("allowed") else "")
    return Answer(Decision.ALLOW if status.get("allowed") else Decision.NO_OPINION, reason)


def _in_version(spec: Json, version: str) -> Json:
    """Rename `groups` to `group` for v1beta1."""
    if version != "v1beta1" or "groups" not in spec:
        return spec
    return {("group" if name == "groups" else name): value for name, value in spec.items()}


_OPERATORS = {
    Operator.EQUALS: "In",
    Operator.DOUBLE_EQUALS: "In",
    Operator.IN: "In",
    Operator.NOT_EQUALS: "NotIn",
    Operator.NOT_IN: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.DOES_NOT_EXIST: "DoesNotExist",
}


def review_spec(asked: Attributes) -> Json:
    """Return the spec of a SubjectAccessReview without empty fields."""
    spec: Json = {}
    if asked.is_resource:
        spec["resourceAttributes"] = _resource(asked)
    else:
        spec["nonResourceAttributes"] = _present({"path": asked.path, "verb": asked.verb})
    user = asked.user
    extra = {key: list(values) for key, values in user.extra.items()}
    return spec | _present({"user": user.name, "groups": list(user.groups), "extra": extra, "uid": user.uid})


def _resource(asked: Attributes) -> Json:
    return _present({
        "namespace": asked.namespace,
        "verb": asked.verb,
        "group": asked.group,
        "version": asked.version,
        "resource": asked.resource,
        "subresource": asked.subresource,
        "name": asked.name,
        "fieldSelector": _selector(_field_requirements(asked.field_selector)),
        "labelSelector": _selector(_label_requirements(asked.label_selector)),
    })  # fmt: skip


def _present(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value}


def _selector(requirements: list[Json]) -> Json:
    return {"requirements": requirements} if requirements else {}


def _field_requirements(selector: str) -> list[Json]:
    try:
        found = fields.parse(selector).requirements if selector else ()
    except InvalidSelector:
        return []
    return [{"key": each.field, "operator": "In" if each.equal else "NotIn", "values": [each.value]} for each in found]


def _label_requirements(selector: str) -> list[Json]:
    try:
        found = labels.parse(selector).requirements if selector else ()
    except InvalidSelector:
        return []
    return [
        _present({"key": each.key, "operator": _OPERATORS[each.operator], "values": list(each.values)})
        for each in found
        if each.operator in _OPERATORS
    ]
