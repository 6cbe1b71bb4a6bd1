"""Writes the built-in schemas into the package when it is built or installed editable.

The source is the OpenAPI definitions in the build dependency kubernetes-validate, which is not needed at run time.
Two files are made: `merge_rules.json` (list types, map types, patch strategies: small, read at start) and
`definitions.json` (everything, with descriptions, in OpenAPI v2 form: read when OpenAPI is asked for).
"""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path
from typing import Any

import orjson
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = "kubernetes_validate/kubernetes-json-schema/v1.36.0-local/_definitions.json"
TARGET = "pilothouse/machinery/schema/_generated"

REFERENCE = "#/$defs/"
RESTORED = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
}
"""Definitions that the source has in another form than the API server publishes."""

RULES = {
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-list-map-keys": "map_keys",
    "x-kubernetes-map-type": "map_type",
    "x-kubernetes-patch-strategy": "patch_strategy",
    "x-kubernetes-patch-merge-key": "patch_merge_key",
}


class SchemaBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls `initialize` before it collects the wheel's files, and for editable installs too."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        target = Path(self.root) / TARGET
        target.mkdir(exist_ok=True)
        definitions = {name: published(name, schema) for name, schema in source_definitions().items()}
        (target / "merge_rules.json").write_bytes(orjson.dumps(merge_rules(definitions)))
        (target / "definitions.json").write_bytes(orjson.dumps(definitions))


def source_definitions() -> dict[str, Any]:
    for file in files("kubernetes-validate") or ():
        if str(file) == SOURCE:
            found: dict[str, Any] = orjson.loads(Path(str(file.locate())).read_bytes())["$defs"]
            return found
    raise FileNotFoundError(f"the build dependency kubernetes-validate does not contain {SOURCE}")


def published(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """A definition as /openapi/v2 shows it: no "null" among the types, no enum for kind and apiVersion."""
    if name in RESTORED:
        return RESTORED[name]
    out = _plain(schema)
    for field in ("kind", "apiVersion"):
        if field in out.get("properties", {}):
            out["properties"][field].pop("enum", None)
    return out


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    out = dict(schema)
    if isinstance(out.get("type"), list):
        out["type"] = next(name for name in out["type"] if name != "null")
    if "$ref" in out:
        out["$ref"] = "#/definitions/" + out["$ref"].removeprefix(REFERENCE)
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = _plain(out[key])
    if "properties" in out:
        out["properties"] = {name: _plain(child) for name, child in out["properties"].items()}
    return out


def merge_rules(definitions: dict[str, Any]) -> dict[str, Any]:
    """definition → field → rules; the rules of the definition itself stand under the empty field name."""
    out: dict[str, Any] = {}
    for name, schema in definitions.items():
        fields = {"": schema} | schema.get("properties", {})
        rules = {field: found for field, child in fields.items() if (found := _rules(child))}
        if rules:
            out[name] = rules
    return out


def _rules(schema: dict[str, Any]) -> dict[str, Any]:
    return {short: schema[long] for long, short in RULES.items() if long in schema}
