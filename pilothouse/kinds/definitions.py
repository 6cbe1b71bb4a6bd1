"""Parts of a CustomResourceDefinition: fields of its schema and printer columns."""

from __future__ import annotations

from pilothouse.machinery.objects import Json


def text_field(description: str, **constraints: object) -> Json:
    return {"type": "string", "description": description, **constraints}


def flag_field(description: str) -> Json:
    return {"type": "boolean", "description": description}


def printer_column(name: str, path: str, kind: str = "string", *, priority: int = 0) -> Json:
    return {"name": name, "type": kind, "jsonPath": path, "priority": priority}
