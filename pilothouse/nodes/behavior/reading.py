"""Parsing of behaviours, from SimulatedBehavior objects and annotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from pilothouse.machinery.durations import DurationError, parse_duration
from pilothouse.machinery.objects import Json
from pilothouse.nodes.behavior.model import PROBES, ContainerBehavior, ExecAnswer, NodeBehavior, over

PREFIX = "pilothouse.dev/"
BEHAVIOR = f"{PREFIX}behavior"
SIMULATED = f"{PREFIX}simulated"
_GREATEST_EXIT_CODE = 255


class InvalidBehavior(ValueError):
    """Invalid behaviour; the message names the field and the problem."""


def container_behavior(given: Json) -> ContainerBehavior:
    """Parse the behaviour of a container. Raises InvalidBehavior."""
    return ContainerBehavior(**_read(given, _CONTAINER_FIELDS))


def node_behavior(given: Json) -> NodeBehavior:
    """Parse the behaviour of a node. Raises InvalidBehavior."""
    return NodeBehavior(**_read(given, _NODE_FIELDS))


def annotated_container(annotations: Mapping[str, str], container: str) -> ContainerBehavior:
    """Return the behaviour of a container from the pod's annotations.

    `pilothouse.dev/behavior` holds JSON for all containers, with overrides by name under "containers". Annotations such
    as `pilothouse.dev/exit-after: 3s` set one field for all containers. Raises InvalidBehavior.
    """
    whole = _json(annotations.get(BEHAVIOR))
    own = _of_containers(whole).get(container) or {}
    whole.pop("containers", None)
    single = {name: annotations[key] for key, name in _SINGLE.items() if key in annotations}
    behavior = over(container_behavior(single), container_behavior(whole))
    return over(container_behavior(own), behavior) if own else behavior


def annotated_names(annotations: Mapping[str, str]) -> list[str]:
    """Return the containers with overrides in the pod's annotations. Raises InvalidBehavior."""
    return [*_of_containers(_json(annotations.get(BEHAVIOR)))]


def _of_containers(whole: Json) -> Json:
    found: Json = whole.get("containers") or {}
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values() if each is not None):
        raise InvalidBehavior("containers: must be an object of objects")
    return found


def annotated_node(annotations: Mapping[str, str]) -> NodeBehavior:
    """Return the behaviour of a node from its annotations. Raises InvalidBehavior."""
    return node_behavior(_json(annotations.get(BEHAVIOR)))


def is_annotated(annotations: Mapping[str, str]) -> bool:
    """Return whether the annotations set any behaviour."""
    return BEHAVIOR in annotations or not _SINGLE.keys().isdisjoint(annotations)


def _json(text: str | None) -> Json:
    if not text:
        return {}
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidBehavior(f"{BEHAVIOR}: {error}") from None
    if not isinstance(found, dict):
        raise InvalidBehavior(f"{BEHAVIOR}: must be an object")
    return found


def _read(given: Json, known: Mapping[str, tuple[str, Callable[[Any], Any]]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise InvalidBehavior(f"{name}: unknown; there are: {', '.join(known)}")
        field, convert = known[name]
        try:
            read[field] = convert(value)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise InvalidBehavior(f"{name}: {error}") from None
    return read


def _seconds(value: str) -> float:
    try:
        return parse_duration(value) / 1e9
    except DurationError as error:
        raise ValueError(str(error)) from None


def _exit_code(value: int | str) -> int:
    code = int(value)
    if not 0 <= code <= _GREATEST_EXIT_CODE:
        raise ValueError(f"must be between 0 and {_GREATEST_EXIT_CODE}")
    return code


def _text(value: str) -> str:
    if not isinstance(value, str):
        raise TypeError("must be a string")
    return value


def _boolean(value: bool | str) -> bool:
    if value in (True, "true"):
        return True
    if value in (False, "false"):
        return False
    raise ValueError("must be true or false")


def _probes(value: list[str] | str) -> frozenset[str]:
    names = frozenset(filter(None, value.split(",")) if isinstance(value, str) else value)
    if unknown := names - {*PROBES}:
        raise ValueError(f"unknown probe {sorted(unknown)[0]!r}; there are: {', '.join(PROBES)}")
    return names


def _answers(value: list[Json]) -> tuple[ExecAnswer, ...]:
    return tuple(
        ExecAnswer(
            tuple(each.get("command") or ()),
            _text(each.get("stdout") or ""),
            _text(each.get("stderr") or ""),
            _exit_code(each.get("exitCode") or 0),
        )
        for each in value
    )


_CONTAINER_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "startAfter": ("start_after", _seconds),
    "imagePullError": ("image_pull_error", _text),
    "exitAfter": ("exit_after", _seconds),
    "exitCode": ("exit_code", _exit_code),
    "oomKilled": ("oom_killed", _boolean),
    "exitTimes": ("exit_times", int),
    "failingProbes": ("failing_probes", _probes),
    "readyAfter": ("ready_after", _seconds),
    "logs": ("logs", _text),
    "exec": ("exec", _answers),
    "cpu": ("cpu", _text),
    "memory": ("memory", _text),
}
"""API field → (model field, parser)."""

_NODE_FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "notReady": ("not_ready", _boolean),
    "gone": ("gone", _boolean),
    "memoryPressure": ("memory_pressure", _boolean),
    "diskPressure": ("disk_pressure", _boolean),
    "pidPressure": ("pid_pressure", _boolean),
    "networkUnavailable": ("network_unavailable", _boolean),
}

_SINGLE = {
    f"{PREFIX}start-after": "startAfter",
    f"{PREFIX}image-pull-error": "imagePullError",
    f"{PREFIX}exit-after": "exitAfter",
    f"{PREFIX}exit-code": "exitCode",
    f"{PREFIX}exit-times": "exitTimes",
    f"{PREFIX}oom-killed": "oomKilled",
    f"{PREFIX}failing-probes": "failingProbes",
    f"{PREFIX}ready-after": "readyAfter",
    f"{PREFIX}logs": "logs",
    f"{PREFIX}cpu": "cpu",
    f"{PREFIX}memory": "memory",
}
"""Annotations that set a single field."""
