"""Label selectors in Go's print format, for autoscaler messages."""

from __future__ import annotations

from pilothouse.machinery.objects import Json


def selector_text(selector: Json | None) -> str:
    """Return `&LabelSelector{…}`, or `nil` for None."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(map(_requirement, selector.get("matchExpressions") or ()))
    requirements = f"[]LabelSelectorRequirement{{{expressions}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:{requirements},}}"


def _requirement(expression: Json) -> str:
    values = " ".join(expression.get("values") or ())
    key, operator = expression["key"], expression["operator"]
    return f"LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
