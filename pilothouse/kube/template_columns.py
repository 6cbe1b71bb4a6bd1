"""Columns for kinds that make pods from a template: the template's containers, its selector, and how many are ready."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pilothouse.apiserver.registry.table import Cell, Column
from pilothouse.machinery.objects import Json, items, number, part
from pilothouse.machinery.selectors.labels import format_label_selector


def _template(obj: Json) -> Json:
    return part(obj, "spec", "template")


def container_columns(template: Callable[[Json], Json] = _template, *, priority: int = 1) -> list[Column]:
    """The names and the images of the containers; with priority 1 only wide tables show them."""
    return [
        Column(
            "Containers",
            lambda obj: _joined(template(obj), "name"),
            priority=priority,
            description="Names of each container in the template.",
        ),
        Column(
            "Images",
            lambda obj: _joined(template(obj), "image"),
            priority=priority,
            description="Images referenced by each container in the template.",
        ),
    ]


def selector_column(definition: str, cell: Cell | None = None) -> Column:
    """`definition` is the spec whose documentation describes its selector."""
    return Column("Selector", cell or _selector, priority=1, documented=(definition, "selector"))


def _selector(obj: Json) -> Any:
    return format_label_selector(part(obj, "spec").get("selector"))


def _joined(template: Json, field: str) -> str:
    return ",".join(container.get(field) or "" for container in items(template, "spec", "containers"))


READY = Column(
    "Ready",
    lambda obj: f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
    description="Number of the pod with ready state",
)
