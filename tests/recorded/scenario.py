"""Running one scenario: its steps in order, in a namespace of its own."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from comparison import dig, normal

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_POLL_FOR, _POLL_EVERY = 10.0, 0.1
_JSON = "application/json"

Json = dict[str, Any]


class Call(Protocol):
    def __call__(self, method: str, path: str, body: Any, content_type: str, headers: Json) -> Reply: ...


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    text: str


@dataclass(frozen=True)
class Step:
    """A step that was run; `answer` is as it came, `compared` what of it counts."""

    asked: Json
    compared: Json


def run_scenario(call: Call, steps: list[Json]) -> Iterator[Step]:
    known = {"ns": f"g{uuid.uuid4().hex[:10]}", "id": f"x{uuid.uuid4().hex[:8]}"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": known["ns"]}}
    call("POST", "/api/v1/namespaces", namespace, _JSON, {})
    for step in steps:
        try:
            answer = _run_step(call, step, known)
        except Exception as error:  # a server that cannot answer counts as a difference
            answer = {"status": 0, "body": f"{type(error).__name__}: {error}"}
        yield Step(step, _compared(answer, step, known))
    call("DELETE", f"/api/v1/namespaces/{known['ns']}", None, _JSON, {})


def _run_step(call: Call, step: Json, known: dict[str, Any]) -> Json:
    method = next(name for name in METHODS if name in step)
    path, body, want = (_filled(step.get(name), known) for name in (method, "body", "until"))
    headers = {**_filled(step.get("headers", {}), known), **_impersonation(step, known)}
    deadline = time.monotonic() + _POLL_FOR
    while True:
        reply = call(method, path, body, step.get("type", _JSON), headers)
        found = _parsed(reply.text, is_watch=bool(step.get("watch")) and reply.status == 200)
        there = all(str(dig(found, key)) == str(value) for key, value in (want or {}).items())
        if there or time.monotonic() > deadline:
            break
        time.sleep(_POLL_EVERY)
    known.update({name: dig(found, where) for name, where in (step.get("save") or {}).items()})
    warning = {name.lower(): value for name, value in reply.headers.items()}.get("warning")
    return {"status": reply.status, "body": found, **({"warning": warning} if warning else {})}


def _filled(value: Any, known: dict[str, Any]) -> Any:
    """Put what earlier steps saved in the place of `{name}`."""
    text = re.sub(r"\{(\w+)\}", lambda match: str(known.get(match[1], match[0])), json.dumps(value))
    return json.loads(text)


def _impersonation(step: Json, known: dict[str, Any]) -> Json:
    who = step.get("as")
    if not who:
        return {}
    groups = {"Impersonate-Group": who["groups"][0]} if who.get("groups") else {}
    return {"Impersonate-User": _filled(who["user"], known), **groups}


def _parsed(text: str, *, is_watch: bool) -> Any:
    if is_watch:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _compared(answer: Json, step: Json, known: dict[str, Any]) -> Json:
    mode, chosen = step.get("compare", "full"), {"status": answer["status"]}
    if mode == "full":
        chosen.update({key: answer[key] for key in ("body", "warning") if key in answer})
    elif mode == "subset":
        chosen["body"] = {path: dig(answer["body"], path) for path in step["pick"]}
    text = json.dumps(normal(chosen, known["ns"])).replace(known["id"], "<id>")
    compared: Json = json.loads(text)
    return compared
