"""The label by which selectors of policy/v1beta1 selected everything or nothing. Beside others it means nothing."""

from __future__ import annotations

from pilothouse.machinery.objects import Json

DEPRECATED_LABEL = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"

_MATCH_NONE: Json = {"matchExpressions": [{"key": DEPRECATED_LABEL, "operator": "Exists"}]}


def strip_deprecated_label(selector: Json | None) -> None:
    """Drops expressions on the label, unless the selector is the one that was meant to select nothing."""
    if not selector or not selector.get("matchExpressions") or selector == _MATCH_NONE:
        return
    kept = [each for each in selector["matchExpressions"] if each.get("key") != DEPRECATED_LABEL]
    if kept:
        selector["matchExpressions"] = kept
    else:
        del selector["matchExpressions"]
