"""Names of resources together with their amounts."""

from __future__ import annotations

from pilothouse.kube.validation.fields import nonnegative_quantity, qualified_name
from pilothouse.kube.validation.resource_names import is_integer, is_standard
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.quantity import parse_quantity


def validate_resource_name(name: str, path: Path) -> Errors:
    errors = list(qualified_name(name, path))
    yield from errors
    if not errors and "/" not in name and not is_standard(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def validate_resource_amount(name: str, text: str, path: Path) -> Errors:
    """An amount is never negative, and whole where the resource comes in units."""
    amount = parse_quantity(text)
    yield from nonnegative_quantity(amount, path)
    if is_integer(name) and amount.overflowing_milli_value() % 1000:
        yield invalid(path, str(amount), "must be an integer")
