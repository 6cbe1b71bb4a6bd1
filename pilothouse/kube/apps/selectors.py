"""Validation of workload selectors: required and not empty."""

from __future__ import annotations

from pilothouse.kube.validation.selectors import is_empty, shown_selector
from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.labels import validate_label_selector


def validate_required_selector(selector: Json | None, path: Path, owner: str) -> Errors:
    if selector is None:
        yield required(path)
        return
    yield from validate_label_selector(selector, path)
    if is_empty(selector):
        yield invalid(path, shown_selector(selector), f"empty selector is invalid for {owner}")
