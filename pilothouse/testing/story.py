"""Changes on a server during a failed test or wait, for its report. Repeated lines are collapsed."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson
import yaml

from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.interface import Entry
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot
    from pilothouse.testing.api import API

_MAX_OBJECTS, _MAX_LINES, _MAX_EVENTS, _MAX_REQUESTS = 30, 40, 50, 50
_MAX_CYCLE = 8
_EVENTS = "/events/"
_HIDDEN = re.compile(
    "/(leases|masterleases|ranges|ipaddresses|events)/|/configmaps/[^/]+/kube-root-ca.crt$|/serviceaccounts/[^/]+/default$"
)
"""Objects of the server itself, and objects that every namespace has."""


async def story_of(api: API, before: StoredSnapshot, began: datetime) -> list[tuple[str, str]]:
    """Return the non-empty sections: changed objects, events, requests since `began`, and warnings."""
    ended = datetime.now(UTC)
    now = await api.snapshot()
    changed = [key for key in sorted({*before.entries, *now.entries}) if _differs(before.entries, now.entries, key)]
    answer = await api.request("GET", "/debug/requests")
    recent: list[dict[str, Any]] = answer.json["requests"] if answer.status == 200 else []
    requests = [request for request in recent if began <= datetime.fromisoformat(request["time"]) < ended]
    sections = {
        "objects that changed": _diffs(before.entries, now.entries, changed),
        "events": collapsed(_events(now.entries[key] for key in changed if _EVENTS in key and key in now.entries)),
        "last requests": [*collapsed(map(_request, requests), key=_without_duration)][-_MAX_REQUESTS:],
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


def _request(record: dict[str, Any]) -> str:
    duration = f"{record['seconds'] * 1000:.1f}ms"
    return f"{record['code']} {duration:>8}  {record['user'] or '-':<20} {record['method']} {record['target']}"


def _without_duration(line: str) -> str:
    return _DURATION.sub("", line)


_DURATION = re.compile(r"\S+ms")


def collapsed(lines: Iterable[str], key: Callable[[str], str] = str) -> Iterator[str]:
    """Yield the lines; repetitions of a line, or of up to eight lines, are one line with their number.

    >>> from pilothouse.testing.story import collapsed
    >>> [*collapsed(["a", "b", "a", "b", "a", "b", "c"])]
    ['a', 'b', '  … 2 more times the last 2 lines', 'c']
    """
    texts = list(lines)
    keys = [key(text) for text in texts]
    at = 0
    while at < len(texts):
        best, times = 1, 0
        for length in range(1, _MAX_CYCLE + 1):
            again = 0
            while keys[at : at + length] == keys[at + (again + 1) * length : at + (again + 2) * length]:
                again += 1
            if again * length > best * times:
                best, times = length, again
        yield from texts[at : at + best]
        if times:
            what = "the last line" if best == 1 else f"the last {best} lines"
            yield f"  … {times} more {'time' if times == 1 else 'times'} {what}"
        at += best * (times + 1)
