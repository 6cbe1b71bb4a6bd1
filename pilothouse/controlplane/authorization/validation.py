"""The validation of an AuthorizationConfiguration, in upstream's words. Durations are seconds by now."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator

from pilothouse.machinery.durations import format_duration
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
from pilothouse.machinery.validation.names import is_dns1123_subdomain

_REPEATABLE = ("Webhook",)
_MOST_CONDITIONS = 64
_LONGEST_TIMEOUT = 30.0


def validate_authorization_configuration(authorizers: list[Json], known: Collection[str]) -> Iterator[FieldError]:
    if not authorizers:
        yield required(root("authorizers"), "at least one authorization mode must be defined")
    types: set[str] = set()
    names: set[str] = set()
    for index, authorizer in enumerate(authorizers):
        path = root("authorizers").index(index)
        errors = list(_type_errors(authorizer.get("type") or "", types, known, path.child("type")))
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
        # Upstream lets this pass and then has no address to call.
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
        why = os.strerror(error.errno or 0).lower()
        yield invalid(path, file, f"error loading file: stat {file}: {why}")
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
    # The compiler is much to load for the many configurations without conditions.
    from pilothouse.apiserver.authz.webhook.match_conditions import compiled_condition

    return compiled_condition(expression).problem
