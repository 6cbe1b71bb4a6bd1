"""AuthorizationConfiguration: read strictly, completed with defaults, and checked in upstream's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pilothouse.controlplane.authorization.settings import AuthorizerSettings, WebhookSettings
from pilothouse.controlplane.authorization.validation import validate_authorization_configuration
from pilothouse.controlplane.options.authorization import MODES, WEBHOOK
from pilothouse.controlplane.strict_decoding import Shape, decode
from pilothouse.machinery.durations import DurationError, parse_duration
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import aggregate

_GROUP = "apiserver.config.k8s.io"
_DURATIONS = {"authorizedTTL": "5m", "unauthorizedTTL": "30s", "timeout": ""}
_NANOSECONDS = 1_000_000_000
_WEBHOOK: Shape = {
    **dict.fromkeys(_DURATIONS, str),
    "cacheAuthorizedRequests": bool,
    "cacheUnauthorizedRequests": bool,
    "subjectAccessReviewVersion": str,
    "matchConditionSubjectAccessReviewVersion": str,
    "failurePolicy": str,
    "connectionInfo": {"type": str, "kubeConfigFile": str},
    "matchConditions": [{"expression": str}],
}
_SHAPE: Shape = {"authorizers": [{"type": str, "name": str, "webhook": _WEBHOOK}]}


def read_authorization_configuration(data: bytes, *, needed: Iterable[str] = ()) -> tuple[AuthorizerSettings, ...]:
    """`needed`: types that must be there, besides webhooks. Raises ValueError."""
    try:
        versions = dict.fromkeys(("v1", "v1beta1", "v1alpha1"), _SHAPE)
        found = decode(data, group=_GROUP, kind="AuthorizationConfiguration", versions=versions) if data else {}
        authorizers = [_completed(each) for each in found.get("authorizers") or ()]
    except ValueError as error:
        raise ValueError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    problems = list(map(str, validate_authorization_configuration(authorizers, MODES)))
    problems = problems or list(_name_problems(authorizers, needed))
    if problems:
        raise ValueError(aggregate(problems))
    return tuple(map(_settings, authorizers))


def _completed(authorizer: Json) -> Json:
    """Durations in seconds, and what upstream fills in."""
    webhook = authorizer.get("webhook")
    if webhook is None:
        return authorizer
    durations = {name: _seconds(webhook.get(name), default) for name, default in _DURATIONS.items()}
    return authorizer | {"webhook": webhook | durations}


def _seconds(text: str | None, default: str) -> float:
    try:
        given = parse_duration(text) / _NANOSECONDS if text else 0.0
        return given or (parse_duration(default) / _NANOSECONDS if default else 0.0)
    except DurationError as error:
        raise ValueError(str(error)) from None


def _name_problems(authorizers: list[Json], needed: Iterable[str]) -> Iterator[str]:
    own = [each for each in authorizers if each["type"] != WEBHOOK]
    for each in own:
        if each["type"].lower() != each["name"]:
            yield f"expected name {each['type'].lower()} for authorizer {each['type']} instead of {each['name']}"
    if missing := sorted(set(needed) - {each["type"] for each in own}):
        yield f"missing required types: [{' '.join(missing)}]"


def _settings(authorizer: Json) -> AuthorizerSettings:
    webhook = authorizer.get("webhook")
    return AuthorizerSettings(
        authorizer["type"],
        authorizer["name"],
        WebhookSettings(
            kubeconfig=webhook["connectionInfo"].get("kubeConfigFile") or "",
            version=webhook["subjectAccessReviewVersion"],
            authorized_ttl=_unless_false(webhook.get("cacheAuthorizedRequests"), webhook["authorizedTTL"]),
            unauthorized_ttl=_unless_false(webhook.get("cacheUnauthorizedRequests"), webhook["unauthorizedTTL"]),
            timeout=webhook["timeout"],
            denies_on_failure=webhook["failurePolicy"] == "Deny",
            conditions=tuple(each["expression"] for each in webhook.get("matchConditions") or ()),
        )
        if webhook
        else None,
    )


def _unless_false(cached: Any, ttl: float) -> float:
    return 0.0 if cached is False else ttl
