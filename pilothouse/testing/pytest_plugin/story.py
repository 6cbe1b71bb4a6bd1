"""Changes on a server during a failed test, for its report."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from pilothouse.machinery.objects import Json
from pilothouse.testing.pytest_plugin.template import end_faults

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.interface import Entry
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot
    from pilothouse.testing.api import BlockingAPI

_MAX_OBJECTS, _MAX_LINES, _MAX_EVENTS = 30, 40, 50
_EVENTS = "/events/"
_HIDDEN = re.compile(
    "/(leases|masterleases|ranges|ipaddresses|events)/|/configmaps/[^/]+/kube-root-ca.crt$|/serviceaccounts/[^/]+/default$"
)
"""Objects of the server itself, and objects that every namespace has."""


def story_of(api: BlockingAPI, before: StoredSnapshot, began: datetime) -> list[tuple[str, str]]:
    """Return the non-empty sections: changed objects, events, requests since `began`, and warnings."""
    ended = datetime.now(UTC)
    end_faults(api)
    now = api.snapshot()
    changed = [key for key in sorted({*before.entries, *now.entries}) if _differs(before.entries, now.entries, key)]
    requests = [request for request in _requests(api) if began <= datetime.fromisoformat(request["time"]) < ended]
    sections = {
        "objects that changed": _diffs(before.entries, now.entries, changed),
        "events": _events(now.entries[key] for key in changed if _EVENTS in key and key in now.entries),
        "last requests": map(_request, requests),
        "warnings": dict.fromkeys(text for request in requests for text in request["warnings"]),
    }
    texts = {title: "\n".join(lines) for title, lines in sections.items()}
    return [(f"Pilothouse: {title}", text) for title, text in texts.items() if text]


def _differs(before: Mapping[str, Entry], now: Mapping[str, Entry], key: str) -> bool:
    old, new = before.get(key), now.get(key)
    return old is None or new is None or old.value != new.value


def _diffs(before: Mapping[str, Entry], now: Mapping[str, Entry], changed: Iterable[str]) -> Iterator[str]:
    keys = [key for key in changed if not _HIDDEN.search(key)]
    for key in keys[:_MAX_OBJECTS]:
        lines = list(_diff(_lines(before.get(key)), _lines(now.get(key))))
        yield f"{_change(key in before, key in now)} {_title(now.get(key) or before[key])}"
        yield from (f"  {line}" for line in lines[:_MAX_LINES])
        if len(lines) > _MAX_LINES:
            yield f"  … {len(lines) - _MAX_LINES} lines more"
    if len(keys) > _MAX_OBJECTS:
        yield f"… and {len(keys) - _MAX_OBJECTS} objects more"


def _change(was: bool, is_now: bool) -> str:
    return "changed" if was and is_now else "created" if is_now else "deleted"


def _diff(old: list[str], new: list[str]) -> Iterator[str]:
    """Return the diff without its header; the new lines if one side is empty."""
    if not old or not new:
        return iter(new)
    return (line for line in difflib.unified_diff(old, new, n=2, lineterm="") if line[:3] not in ("---", "+++"))


def _lines(entry: Entry | None) -> list[str]:
    if entry is None:
        return []
    obj = _decoded(entry)
    obj.get("metadata", {}).pop("managedFields", None)
    body = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind")}
    return yaml.safe_dump(body, sort_keys=False).splitlines()


def _title(entry: Entry) -> str:
    obj = _decoded(entry)
    metadata = obj.get("metadata", {})
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj.get('kind') or entry.key} {namespace}{metadata.get('name', '')}"


def _decoded(entry: Entry) -> Json:
    try:
        obj = orjson.loads(entry.value)
    except ValueError:  # encrypted
        return {}
    return obj if isinstance(obj, dict) else {}


def _events(entries: Iterable[Entry]) -> Iterator[str]:
    events = sorted(map(_decoded, entries), key=lambda event: str(event.get("metadata", {}).get("creationTimestamp")))
    for event in events[-_MAX_EVENTS:]:
        about = event.get("involvedObject") or event.get("regarding") or {}
        text = event.get("message") or event.get("note") or ""
        named = f"{about.get('kind', '')} {about.get('namespace', '')}/{about.get('name', '')}"
        yield f"{event.get('type', '')} {event.get('reason', '')} {named}: {text}"


def _requests(api: BlockingAPI) -> list[dict[str, Any]]:
    answer = api.request("GET", "/debug/requests")
    return list(answer.json["requests"]) if answer.status == 200 else []


def _request(record: dict[str, Any]) -> str:
    duration = f"{record['seconds'] * 1000:.1f}ms"
    return f"{record['code']} {duration:>8}  {record['user'] or '-':<20} {record['method']} {record['target']}"
