"""The definitions that upstream publishes, from the build dependency kubernetes-validate, as /openapi/v2 shows them."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path
from typing import Any

import orjson

from pilothouse.machinery.objects import Json

_SOURCE = "kubernetes_validate/kubernetes-json-schema/v{}.0-local/_definitions.json"
_REFERENCE = "#/$defs/"
_RESTORED: dict[str, Json] = orjson.loads(Path(__file__).with_name("restored.json").read_bytes())
"""Definitions that the source has in another form than the API server publishes."""


def published_definitions(version: str) -> dict[str, Json]:
    """The definitions of a minor version by name. Raises FileNotFoundError without the build dependency."""
    return {name: _published(name, schema) for name, schema in _source_definitions(_SOURCE.format(version)).items()}


def _source_definitions(source: str) -> dict[str, Any]:
    for file in files("kubernetes-validate") or ():
        if str(file) == source:
            found: dict[str, Any] = orjson.loads(Path(str(file.locate())).read_bytes())["$defs"]
            return found
    raise FileNotFoundError(f"the build dependency kubernetes-validate does not contain {source}")


def _published(name: str, schema: Json) -> Json:
    """A definition as /openapi/v2 shows it: no "null" among the types, no enum for kind and apiVersion."""
    if name in _RESTORED:
        return _RESTORED[name]
    out = _plain(schema)
    for field in ("kind", "apiVersion"):
        if field in out.get("properties", {}):
            out["properties"][field].pop("enum", None)
    return out


def _plain(schema: Json) -> Json:
    out = dict(schema)
    if isinstance(out.get("type"), list):
        out["type"] = next(name for name in out["type"] if name != "null")
    if "$ref" in out:
        out["$ref"] = "#/definitions/" + out["$ref"].removeprefix(_REFERENCE)
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), dict):
            out[key] = _plain(out[key])
    if "properties" in out:
        out["properties"] = {name: _plain(child) for name, child in out["properties"].items()}
    return out
