"""What a rule must say about itself, before anybody compiles it."""

from __future__ import annotations

import re

from pilothouse.extensions.schema.field_paths import InvalidFieldPath, find_field
from pilothouse.extensions.schema.structural import VALIDATIONS, structural
from pilothouse.machinery.field import Errors, Path, invalid, not_supported, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.format import EMPTY_IF_SPECIFIED_ERROR, LINE_BREAKS_ERROR

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINE_BREAK = re.compile(r"[\n\r]")


def validate_rules(schema: Json, path: Path) -> Errors:
    for index, rule in enumerate(schema.get(VALIDATIONS) or []):
        at = path.child(VALIDATIONS).index(index)
        yield from _validate_texts(rule, at)
        if rule.get("messageExpression") and not rule["messageExpression"].strip():
            yield required(at.child("messageExpression"), "messageExpression must be non-empty if specified")
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield not_supported(at.child("reason"), rule["reason"], _REASONS)
        if rule.get("fieldPath"):
            yield from _validate_field_path(rule["fieldPath"], schema, at.child("fieldPath"))


def _validate_texts(rule: Json, path: Path) -> Errors:
    text, message = rule.get("rule") or "", rule.get("message") or ""
    if not text.strip():
        yield required(path.child("rule"), "rule is not specified")
    elif message and not message.strip():
        yield invalid(path.child("message"), message, EMPTY_IF_SPECIFIED_ERROR)
    elif _LINE_BREAK.search(message.strip()):
        yield invalid(path.child("message"), message, LINE_BREAKS_ERROR)
    elif _LINE_BREAK.search(text.strip()) and not message.strip():
        yield required(path.child("message"), "message must be specified if rule contains line breaks")


def _validate_field_path(field_path: str, schema: Json, path: Path) -> Errors:
    if not field_path.strip():
        yield invalid(path, field_path, EMPTY_IF_SPECIFIED_ERROR)
    if _LINE_BREAK.search(field_path):
        yield invalid(path, field_path, LINE_BREAKS_ERROR)
    try:
        find_field(field_path, structural(schema))
    except InvalidFieldPath:
        yield invalid(path, field_path, "must be a valid path")
