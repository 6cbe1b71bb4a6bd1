"""Admission policies and bindings for tests, and requests that are sent until a policy holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from patience import PATIENCE

from pilothouse.client import Json
from pilothouse.testing import API, Answer

_GROUP = "admissionregistration.k8s.io/v1"
_CONFIG_MAPS = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]


def policy(name: str, *, how: str = "Validating", rules: list[Json] | None = None, **spec: Any) -> Json:
    """About config maps, unless it has other rules."""
    kind = f"{how}AdmissionPolicy"
    constraints = {"resourceRules": rules or _CONFIG_MAPS, **spec.pop("constraints", {})}
    return {
        "apiVersion": _GROUP,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"matchConstraints": constraints, **spec},
    }


def binding(name: str, *, how: str = "Validating", **spec: Any) -> Json:
    actions = {"validationActions": ["Deny"]} if how == "Validating" else {}
    kind = f"{how}AdmissionPolicyBinding"
    return {
        "apiVersion": _GROUP,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"policyName": name, **actions, **spec},
    }


async def apply(server: API, *objects: Json) -> None:
    for obj in objects:
        plural = obj["kind"].lower().replace("policy", "policies" if obj["kind"].endswith("Policy") else "policy")
        plural = plural if plural.endswith("s") else f"{plural}s"
        answer = await server.request("POST", f"/apis/{_GROUP}/{plural}", obj)
        assert answer.status == 201, answer.body


async def until(request: Callable[[], Awaitable[Answer]], holds: Callable[[Answer], bool]) -> Answer:
    """Policies hold a moment after they are written."""
    deadline = time.monotonic() + PATIENCE
    while not holds(answer := await request()):
        assert time.monotonic() < deadline, f"the policy does not hold: {answer.body!r}"
        await asyncio.sleep(0.01)
    return answer
