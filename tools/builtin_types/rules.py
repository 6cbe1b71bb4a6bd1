"""The rules of fields: the small part of the definitions that decoding, patching and applying go by."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.generated import Rules
from pilothouse.machinery.objects import Json
from tools.builtin_types.sources import Types

RULES = {
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-list-map-keys": "map_keys",
    "x-kubernetes-map-type": "map_type",
    "x-kubernetes-patch-strategy": "patch_strategy",
    "x-kubernetes-patch-merge-key": "patch_merge_key",
}


def field_rules(types: Types) -> Rules:
    """definition → field → rules; the rules of the definition itself stand under the empty field name."""
    out: Rules = {}
    for name, schema in types.definitions.items():
        fields = {"": schema} | schema.get("properties", {})
        rules = {field: found for field, child in fields.items() if (found := _rules(child))}
        if rules:
            out[name] = rules
    for place, default in types.defaults.items():
        definition, _, field = place.rpartition(".")
        out.setdefault(definition, {}).setdefault(field, {})["default"] = default
    return out


def _rules(schema: Json) -> dict[str, Any]:
    return {short: schema[long] for long, short in RULES.items() if long in schema}
