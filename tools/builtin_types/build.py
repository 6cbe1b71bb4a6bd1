"""Writes what `pilothouse/machinery/generated.py` reads."""

from __future__ import annotations

from pathlib import Path

import orjson

from tools.builtin_types.agreement import check_agreement
from tools.builtin_types.enums import with_enums
from tools.builtin_types.merging import merged
from tools.builtin_types.overlay import Overlay
from tools.builtin_types.rules import field_rules
from tools.builtin_types.sources import Types


def build(types: Types, overlay: Overlay, target: Path) -> None:
    """Fill the folder `target` anew, and only when all sources agree. Raises OverlayError or Disagreement.

    `field_rules.json` is small and read at start; `definitions.json` is everything in OpenAPI v2 form, read when a
    document is asked for; each other file has the Go structs of one protobuf package, read with its first kind.
    """
    types = with_enums(merged(types, overlay))
    check_agreement(types)
    target.mkdir(exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    for package, text in types.structs.items():
        (target / f"{package}.txt").write_text(text, encoding="utf-8")
    (target / "field_rules.json").write_bytes(orjson.dumps(field_rules(types)))
    (target / "definitions.json").write_bytes(orjson.dumps(types.definitions))
