"""Two runs of one scenario differ in ids, times, versions and generated names, and should in nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_IPV4 = re.compile(r"\b10\.\d+\.\d+\.\d+\b")
_NETWORK = re.compile(r"(remote error: |dial tcp .*)$")
_GENERATED = re.compile(r"(?<=-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
_VOLATILE = {"uid", "resourceVersion", "continue", "remainingItemCount", "selfLink", "nodePort", "healthCheckNodePort"}
_SHOWN = 160


def normal(value: Any, namespace: str, key: str = "") -> Any:
    """Return the value with placeholders for what must differ between two runs."""
    if isinstance(value, dict):
        return {normal(name, namespace): normal(member, namespace, name) for name, member in value.items()}
    if isinstance(value, list):
        return [normal(item, namespace, key) for item in value]
    if key in _VOLATILE and value not in (None, "", 0):
        return f"<{key}>"
    return _normal_text(value, namespace, key) if isinstance(value, str) else value


def _normal_text(text: str, namespace: str, key: str) -> str:
    text = text.replace(namespace, "<ns>")
    for pattern, placeholder in ((_TIMESTAMP, "<time>"), (_UUID, "<uuid>"), (_IPV4, "<ip>"), (_NETWORK, "<net>")):
        text = pattern.sub(placeholder, text)
    return _GENERATED.sub("<gen>", text) if key in ("name", "message") else text


def differences(want: Any, got: Any, path: str = "") -> Iterator[str]:
    numbers = isinstance(want, (int, float)) and isinstance(got, (int, float))
    if type(want) is not type(got) and not numbers:
        yield f"{path or '.'}: want {short(want)} got {short(got)}"
    elif isinstance(want, dict):
        yield from _member_differences(want, got, path)
    elif isinstance(want, list):
        if len(want) != len(got):
            yield f"{path}: want {len(want)} items, got {len(got)}"
        for at, (one, other) in enumerate(zip(want, got, strict=False)):
            yield from differences(one, other, f"{path}[{at}]")
    elif want != got:
        yield f"{path}: want {short(want)} got {short(got)}"


def _member_differences(want: dict[str, Any], got: dict[str, Any], path: str) -> Iterator[str]:
    for key in sorted(want.keys() | got.keys()):
        if key not in got:
            yield f"{path}.{key}: missing, want {short(want[key])}"
        elif key not in want:
            yield f"{path}.{key}: unexpected {short(got[key])}"
        else:
            yield from differences(want[key], got[key], f"{path}.{key}")


def without(value: Any, keys: Collection[str]) -> Any:
    """Return the value without these keys, at any depth."""
    if isinstance(value, dict):
        return {key: without(member, keys) for key, member in value.items() if key not in keys}
    return [without(item, keys) for item in value] if isinstance(value, list) else value


def short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) < _SHOWN else text[: _SHOWN - 3] + "..."


def dig(value: Any, dotted: str) -> Any:
    """Return what stands at `metadata.labels[a.b/c]` or `items.0`; None where nothing does."""
    for part in re.findall(r"\[[^\]]+\]|[^.\[]+", dotted):
        name = part.strip("[]")
        if isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value
