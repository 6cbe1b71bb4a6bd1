"""Behaviour of a container or node, parsed from SimulatedBehavior objects and annotations.

A field that is None falls back to the next source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import orjson

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import DurationError, parse_duration
from pilothouse.machinery.objects import Json

T = TypeVar("T", "ContainerBehavior", "NodeBehavior")

STARTUP, READINESS, LIVENESS = PROBES = ("startup", "readiness", "liveness")

PREFIX = "pilothouse.dev/"
BEHAVIOR = f"{PREFIX}behavior"
SIMULATED = f"{PREFIX}simulated"
_GREATEST_EXIT_CODE = 255
_MOST_ANSWERS = 100
_PLAIN = "text/plain; charset=utf-8"
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


@dataclass(frozen=True, slots=True)
class ExecAnswer:
    """The response to commands with this prefix; an empty prefix matches all commands."""

    command: tuple[str, ...] = ()
    stdout: str = ""
    stderr: str = ""
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The response to HTTP requests for a path and the paths below it."""

    path: str = "/"
    port: int = 0
    """0 = every port on which the container listens; any other port is opened."""
    status: int = 200
    body: str = ""
    content_type: str = _PLAIN

    def matches(self, port: int, path: str) -> bool:
        base = self.path.rstrip("/")
        return self.port in (0, port) and (path == base or path.startswith(f"{base}/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerBehavior:
    start_after: float | None = None
    """Seconds until the container is created."""
    image_pull_error: str | None = None
    """Error message of the image pull; empty = the pull succeeds."""
    exit_after: float | None = None
    """Seconds until the container exits."""
    exit_code: int | None = None
    """Exit code."""
    oom_killed: bool | None = None
    """Whether the container is OOMKilled, with exit code 137."""
    exit_times: int | None = None
    """Number of such exits, after which the container keeps running; None = unlimited."""
    failing_probes: frozenset[str] | None = None
    """Failing probes: startup, readiness, liveness."""
    ready_after: float | None = None
    """Seconds until the container is ready, regardless of probes."""
    logs: str | None = None
    exec: tuple[ExecAnswer, ...] | None = None
    http: tuple[HttpAnswer, ...] | None = None
    """Responses to HTTP requests and probes."""
    cpu: str | None = None
    """CPU usage: a quantity, or a percentage of the request such as 50%."""
    memory: str | None = None

    def answer_to(self, command: list[str]) -> ExecAnswer | None:
        """Return the configured response with the longest matching prefix; None = default response."""
        fitting = (answer for answer in self.exec or () if tuple(command[: len(answer.command)]) == answer.command)
        return max(fitting, key=lambda answer: len(answer.command), default=None)

    def http_answer(self, port: int, path: str) -> HttpAnswer | None:
        """Return the configured response with the longest matching path; None = default response."""
        fitting = (answer for answer in self.http or () if answer.matches(port, path))
        return max(fitting, key=lambda answer: (len(answer.path.rstrip("/")), answer.port), default=None)

    def fails(self, probe: str) -> bool:
        return probe in (self.failing_probes or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBehavior:
    not_ready: bool | None = None
    """The node reports NotReady."""
    gone: bool | None = None
    """The node is silent: no heartbeats, and its pods do not change."""
    memory_pressure: bool | None = None
    disk_pressure: bool | None = None
    pid_pressure: bool | None = None
    network_unavailable: bool | None = None


NOTHING_SPECIAL = ContainerBehavior()
HEALTHY = NodeBehavior()


def over(first: T, second: T) -> T:
    """Return `first`, with unset fields taken from `second`."""
    if first == second:
        return first
    values: dict[str, Any] = {field.name: getattr(first, field.name) for field in fields(first)}
    return replace(second, **{name: value for name, value in values.items() if value is not None})


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
    containers: Json = whole.get("containers") or {}
    if not isinstance(containers, dict) or not all(
        isinstance(value, dict) for value in containers.values() if value is not None
    ):
        raise InvalidBehavior("containers: must be an object of objects")
    return containers


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
        behavior = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidBehavior(f"{BEHAVIOR}: {error}") from None
    if not isinstance(behavior, dict):
        raise InvalidBehavior(f"{BEHAVIOR}: must be an object")
    return behavior


def _read(values: Json, parsers: Mapping[str, tuple[str, Callable[[Any], Any]]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, value in values.items():
        if name not in parsers:
            raise InvalidBehavior(f"{name}: unknown; there are: {', '.join(parsers)}")
        field, convert = parsers[name]
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
    return _within(int(value), 0, _GREATEST_EXIT_CODE)


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
            tuple(answer.get("command") or ()),
            _text(answer.get("stdout") or ""),
            _text(answer.get("stderr") or ""),
            _exit_code(answer.get("exitCode") or 0),
        )
        for answer in _few(value)
    )


def _http_answers(value: list[Json]) -> tuple[HttpAnswer, ...]:
    return tuple(
        HttpAnswer(
            _path(answer.get("path") or "/"),
            _within(answer.get("port") or 0, 0, 65535),
            _within(answer.get("status") or 200, 200, 599),
            _text(answer.get("body") or ""),
            _line(answer.get("contentType") or _PLAIN),
        )
        for answer in _few(value)
    )


def _few(answers: list[Json]) -> list[Json]:
    if len(answers) > _MOST_ANSWERS:
        raise ValueError(f"must have at most {_MOST_ANSWERS} items")
    return answers


def _path(value: str) -> str:
    if not _text(value).startswith("/"):
        raise ValueError(f"must begin with a slash: {value!r}")
    return value


def _within(value: int, least: int, most: int) -> int:
    if not least <= int(value) <= most:
        raise ValueError(f"must be between {least} and {most}")
    return int(value)


def _line(value: str) -> str:
    if not _text(value).isprintable() or not value.isascii():
        raise ValueError("must be one line of ASCII text")
    return value


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
    "http": ("http", _http_answers),
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
