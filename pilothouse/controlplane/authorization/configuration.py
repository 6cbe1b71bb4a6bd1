"""AuthorizationConfiguration: strict decoding, defaults, and validation with upstream's messages."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from pilothouse.controlplane.authorization.setup import AuthorizerSettings, WebhookSettings
from pilothouse.controlplane.options.authorization import MODES, WEBHOOK
from pilothouse.controlplane.strict_decoding import Shape, decode
from pilothouse.machinery.durations import DurationError, format_duration, parse_duration
from pilothouse.machinery.field import (
    FieldError,
    Path,
    duplicate,
    invalid,
    not_supported,
    required,
    root,
    too_many,
)
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import aggregate
from pilothouse.machinery.validation.names import is_dns1123_subdomain

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
    """Decode and validate the configuration. `needed` lists required types besides Webhook. Raises ValueError."""
    try:
        versions = dict.fromkeys(("v1", "v1beta1", "v1alpha1"), _SHAPE)
        config = decode(data, group=_GROUP, kind="AuthorizationConfiguration", versions=versions) if data else {}
        authorizers = [_completed(authorizer) for authorizer in config.get("authorizers") or ()]
    except ValueError as error:
        raise ValueError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    problems = list(map(str, validate_authorization_configuration(authorizers, MODES)))
    problems = problems or list(_name_problems(authorizers, needed))
    if problems:
        raise ValueError(aggregate(problems))
    return tuple(map(_settings, authorizers))


def _completed(authorizer: Json) -> Json:
    """Apply upstream's defaults, and convert durations to seconds."""
    webhook = authorizer.get("webhook")
    if webhook is None:
        return authorizer
    durations = {name: _seconds(webhook.get(name), default) for name, default in _DURATIONS.items()}
    return authorizer | {"webhook": webhook | durations}


def _seconds(text: str | None, default: str) -> float:
    try:
        seconds = parse_duration(text) / _NANOSECONDS if text else 0.0
        return seconds or (parse_duration(default) / _NANOSECONDS if default else 0.0)
    except DurationError as error:
        raise ValueError(str(error)) from None


def _name_problems(authorizers: list[Json], needed: Iterable[str]) -> Iterator[str]:
    own = [authorizer for authorizer in authorizers if authorizer["type"] != WEBHOOK]
    for each in own:
        if each["type"].lower() != each["name"]:
            yield f"expected name {each['type'].lower()} for authorizer {each['type']} instead of {each['name']}"
    if missing := sorted(set(needed) - {authorizer["type"] for authorizer in own}):
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
            conditions=tuple(condition["expression"] for condition in webhook.get("matchConditions") or ()),
        )
        if webhook
        else None,
    )


def _unless_false(cached: Any, ttl: float) -> float:
    return 0.0 if cached is False else ttl


_REPEATABLE = ("Webhook",)
_MOST_CONDITIONS = 64
_LONGEST_TIMEOUT = 30.0


def validate_authorization_configuration(authorizers: list[Json], known_types: Collection[str]) -> Iterator[FieldError]:
    if not authorizers:
        yield required(root("authorizers"), "at least one authorization mode must be defined")
    types: set[str] = set()
    names: set[str] = set()
    for index, authorizer in enumerate(authorizers):
        path = root("authorizers").index(index)
        errors = list(_type_errors(authorizer.get("type") or "", types, known_types, path.child("type")))
        if errors:
            yield from errors
            continue
        types.add(authorizer["type"])
        name = authorizer.get("name") or ""
        yield from _name_errors(name, names, path.child("name"))
        names.add(name)
        yield from _webhook_errors(authorizer, path)


def _type_errors(type: str, seen: Collection[str], known: Collection[str], path: Path) -> Iterator[FieldError]:
    if not type:
        yield required(path)
    elif type not in known:
        yield not_supported(path, type, sorted(known))
    elif type in seen and type not in _REPEATABLE:
        yield duplicate(path, type)


def _name_errors(name: str, seen: Collection[str], path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
    elif name in seen:
        yield duplicate(path, name)
    elif messages := is_dns1123_subdomain(name):
        yield invalid(path, name, f"authorizer name is invalid: {', '.join(messages)}")


def _webhook_errors(authorizer: Json, path: Path) -> Iterator[FieldError]:
    webhook = authorizer.get("webhook")
    if authorizer["type"] != "Webhook":
        if webhook is not None:
            yield invalid(path.child("webhook"), "non-null", "may only be specified when type=Webhook")
    elif webhook is None:
        yield required(path.child("webhook"), "required when type=Webhook")
    else:
        for name in ("timeout", "authorizedTTL", "unauthorizedTTL"):
            seconds, longest = webhook[name], _LONGEST_TIMEOUT if name == "timeout" else float("inf")
            if not seconds:
                yield required(path.child(name))
            elif not 0 < seconds <= longest:
                must = "must be > 0s and <= 30s" if name == "timeout" else "must be > 0s"
                yield invalid(path.child(name), format_duration(round(seconds * 1e9)), must)
        choices = {"subjectAccessReviewVersion": ("v1", "v1beta1"), "failurePolicy": ("NoOpinion", "Deny")}
        yield from _choice(webhook, "subjectAccessReviewVersion", choices["subjectAccessReviewVersion"], path)
        field = "matchConditionSubjectAccessReviewVersion"
        if webhook.get(field):
            yield from _choice(webhook, field, ("v1",), path)
        elif webhook.get("matchConditions"):
            yield required(path.child(field), "required if match conditions are specified")
        yield from _choice(webhook, "failurePolicy", choices["failurePolicy"], path)
        yield from _connection_errors(webhook.get("connectionInfo") or {}, path.child("connectionInfo"))
        yield from _condition_errors(webhook.get("matchConditions") or [], path.child("matchConditions"))


def _choice(webhook: Json, name: str, choices: Collection[str], path: Path) -> Iterator[FieldError]:
    value = webhook.get(name) or ""
    if not value:
        yield required(path.child(name))
    elif value not in choices:
        yield not_supported(path.child(name), value, choices)


def _connection_errors(connection: Json, path: Path) -> Iterator[FieldError]:
    type, file = connection.get("type") or "", connection.get("kubeConfigFile")
    if type == "KubeConfigFile":
        yield from _file_errors(file or "", path.child("kubeConfigFile"))
    elif type == "InClusterConfig":
        # Upstream accepts InClusterConfig, and then has no address to call.
        yield invalid(path.child("type"), type, "an API server has no configuration inside of a cluster")
    elif type:
        yield not_supported(path.child("type"), connection, ["InClusterConfig", "KubeConfigFile"])
    else:
        yield required(path.child("type"))


def _file_errors(file: str, path: Path) -> Iterator[FieldError]:
    if not file:
        yield required(path)
        return
    if not os.path.isabs(file):
        yield invalid(path, file, "must be an absolute path")
        return
    try:
        mode = os.stat(file).st_mode
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        yield invalid(path, file, f"error loading file: stat {file}: {reason}")
        return
    if not stat.S_ISREG(mode):
        yield invalid(path, file, "must be a regular file")


def _condition_errors(conditions: list[Json], path: Path) -> Iterator[FieldError]:
    if len(conditions) > _MOST_CONDITIONS:
        yield too_many(path, len(conditions), _MOST_CONDITIONS)
        return
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        expression, where = condition.get("expression") or "", path.index(index).child("expression")
        if not expression.strip():
            yield required(where)
        elif expression in seen:
            yield duplicate(where, expression)
        elif problem := _compilation_problem(expression):
            yield invalid(where, expression, problem)
        seen.add(expression)


def _compilation_problem(expression: str) -> str:
    # Lazy import: the CEL compiler is slow to import.
    from pilothouse.apiserver.authz.match_conditions import compiled_condition

    return compiled_condition(expression).problem
