"""All that is known of the types, before and after the overlay is merged into it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilothouse.machinery import generated
from pilothouse.machinery.objects import Json
from pilothouse.machinery.wire_facts import Package

BASE = generated.BASE
"""Minor version whose structs, enums and definitions are kept whole; others are differences from it."""

INSTALLED = Path(generated.__file__).parent / "_generated"

_GO_STRUCTS = Path(__file__).parent / "go_structs"


@dataclass(frozen=True)
class Types:
    """`structs` are texts by protobuf package, `defaults` are by definition and field: `…v1.ContainerPort.protocol`."""

    definitions: Mapping[str, Json]
    structs: Mapping[str, str]
    defaults: Mapping[str, Any]


def go_structs() -> dict[str, str]:
    """Upstream's structs of BASE by protobuf package."""
    return {path.stem: path.read_text("ascii") for path in _GO_STRUCTS.glob("*.txt")}


def installed_types() -> Types:
    """The types of this process's release as the last build made them, overlay included."""
    rules = generated.field_rules().items()
    defaults = {
        f"{definition}.{field}": rule["default"]
        for definition, fields in rules
        for field, rule in fields.items()
        if "default" in rule
    }
    structs = {package: generated.go_structs(package) for package in generated.packages()}
    return Types(generated.definitions(), structs, defaults)


def parsed(structs: Mapping[str, str]) -> dict[str, Package]:
    return {name: Package.parse(name, text) for name, text in structs.items()}
