"""Writes what `pilothouse/machinery/generated.py` reads."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from tools.builtin_types.agreement import check_agreement
from tools.builtin_types.differences import OTHERS, differences, overlay_of, structs_of
from tools.builtin_types.enums import with_enums
from tools.builtin_types.merging import merged
from tools.builtin_types.overlay import Overlay
from tools.builtin_types.published import published_definitions
from tools.builtin_types.rules import field_rules
from tools.builtin_types.sources import BASE, Types, go_structs


def published_types() -> dict[str, Types]:
    """Minor version -> its types as upstream has them. Raises FileNotFoundError without the build dependency."""
    base = go_structs()
    return {name: Types(published_definitions(name), structs_of(name, base), {}) for name in (BASE, *OTHERS)}


def build(versions: Mapping[str, Types], overlay: Overlay, target: Path) -> None:
    """Fill the folder `target` anew, and only when all sources of all versions agree.

    The files of BASE stand in `target`, those of another version in a folder of its name. `field_rules.json` is small
    and read at start; `definitions.json` is everything in OpenAPI v2 form, read when a document is asked for; each
    other file has the Go structs of one protobuf package, read with its first kind. The folder of a version has only
    what differs from BASE: packages (an empty file is a package that the version lacks), and definitions (null is one
    that it lacks). Raises OverlayError or Disagreement.
    """
    complete = {name: _complete(name, types, overlay) for name, types in versions.items()}
    shutil.rmtree(target, ignore_errors=True)
    base = complete.pop(BASE)
    _write(base, target)
    for name, types in complete.items():
        _write(types, target / name, base)
        (target / name / "printed.json").write_bytes(orjson.dumps(differences(name).printed))


def _complete(name: str, types: Types, overlay: Overlay) -> Types:
    complete = with_enums(merged(types, overlay_of(name, overlay, types)), name)
    check_agreement(complete)
    return complete


def _write(types: Types, target: Path, base: Types | None = None) -> None:
    structs, definitions = types.structs, types.definitions
    if base is not None:
        structs, definitions = _changes(base.structs, structs, ""), _changes(base.definitions, definitions, None)
    target.mkdir(exist_ok=True)
    for package, text in structs.items():
        (target / f"{package}.txt").write_text(text, encoding="utf-8")
    (target / "field_rules.json").write_bytes(orjson.dumps(field_rules(types)))
    (target / "definitions.json").write_bytes(orjson.dumps(definitions))


def _changes(base: Mapping[str, Any], new: Mapping[str, Any], removed: Any) -> dict[str, Any]:
    changed = {name: value for name, value in new.items() if base.get(name) != value}
    return changed | {name: removed for name in base if name not in new}
