"""explore.yaml: setup, operator, steps, invariants and budget of an exploration, with its JSON schema."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pilothouse.explore.model import PerturbationKind
from pilothouse.machinery.codec.yaml import parse_yaml, split_documents
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.durations import parse_duration
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import PilothouseError

API_VERSION: Final = "explore.pilothouse.dev/v1alpha1"
KIND: Final = "Exploration"
_DURATION: Final = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"


class ScenarioError(PilothouseError):
    """explore.yaml is invalid. The message lists every problem."""


def _record(description: str, properties: Json, *required: str) -> Json:
    schema = {"type": "object", "description": description, "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def _text(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def _duration(description: str) -> Json:
    return _text(description, pattern=_DURATION)


def _array(description: str, items: Json) -> Json:
    return {"type": "array", "description": description, "items": items}


_OBJECT: Final[Json] = {
    "description": "File with manifests, relative to explore.yaml; an object; or a list of objects.",
    "type": ["string", "object", "array"],
}
_REFERENCE: Final[Json] = {
    "apiVersion": _text("API version of the object."),
    "kind": _text("Kind of the object."),
    "namespace": _text("Namespace; default: default for namespaced kinds."),
    "name": _text("Object name."),
}
_STEP: Final = _record(
    "One step: exactly one of apply, patch, delete, wait and advance. The next step begins when all has settled.",
    {
        "name": _text("Name of the step in reports."),
        "apply": _OBJECT | {"description": "Objects to apply. " + _OBJECT["description"]},
        "patch": _record(
            "Merge patch of one object.",
            {
                **_REFERENCE,
                "subresource": _text("Subresource, such as status."),
                "patch": {"type": "object", "description": "The merge patch."},
            },
            *("apiVersion", "kind", "name", "patch"),
        ),
        "delete": _record(
            "Delete one object.",
            {
                **_REFERENCE,
                "propagationPolicy": _text("Deletion propagation.", enum=["Background", "Foreground", "Orphan"]),
            },
            *("apiVersion", "kind", "name"),
        ),
        "wait": _record(
            "Wait until an expression is true. Virtual time passes while the operator is idle.",
            {
                **_REFERENCE,
                "cel": _text("CEL expression over `object`; null if the object does not exist."),
                "timeout": _duration("Virtual timeout; default: 10m."),
            },
            *("apiVersion", "kind", "name", "cel"),
        ),
        "advance": _duration("Duration to advance the clock."),
        "settle": {
            "type": "boolean",
            "description": "Whether the next step waits until everything has settled; default: true.",
        },
    },
)
_PROGRAM: Final = _record(
    "The operator: exactly one of manager, callable, command and controllers.",
    {
        "manager": _text(
            "`module:function` that takes a pilothouse Client and returns a pilothouse.operator.Manager; runs in the"
            " process of the explorer, with the virtual clock."
        ),
        "callable": _text(
            "`module:coroutine_function` that takes the path of a kubeconfig and runs until cancelled; runs in the"
            " process of the explorer, with the real clock."
        ),
        "command": _array(
            "Command line of an operator in any language; `KUBECONFIG` and `{kubeconfig}` are the kubeconfig file.",
            {"type": "string"},
        ),
        "controllers": _array(
            "Controllers of the server, by the names of `--controllers`, such as deployment-controller; they run in the"
            " process of the explorer, with the virtual clock, and not in the server.",
            {"type": "string"},
        ),
        "directory": _text("Working directory and import path; default: the folder of explore.yaml."),
        "env": {
            "type": "object",
            "description": "Environment variables of the command.",
            "additionalProperties": {"type": "string"},
        },
        "serviceAccount": _text(
            "`namespace/name`: the operator has only the permissions of the account; default: all permissions."
        ),
        "quietFor": _duration(
            "An operator outside of the process is idle after this time without a request and without CPU time;"
            " default: 500ms."
        ),
        "startTimeout": _duration("Real time until the first request of a command; default: 60s."),
    },
)
_INVARIANT: Final = _record(
    "A rule that holds for every object of a kind, or for all objects: exactly one of cel and python.",
    {
        "name": _text("Name of the invariant in reports."),
        "apiVersion": _text("API version of the objects."),
        "kind": _text("Kind of the objects; without a kind, the expression sees only `objects`."),
        "cel": _text(
            "CEL expression: `object` is the object, `oldObject` its previous revision or null, `objects` all objects"
            " of the same revision by kind and key: objects.ConfigMap['default/web']."
        ),
        "python": _text("`module:function` that takes all objects and returns a list of violations."),
        "at": _text("EveryRevision (default) or End.", enum=["EveryRevision", "End"]),
        "message": _text("Message for a violation."),
    },
    "name",
)
SCHEMA: Final[Json] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "explore.yaml",
    **_record(
        "An exploration: one scenario of an operator, and how to disturb it.",
        {
            "apiVersion": _text("Version of the format.", enum=[API_VERSION]),
            "kind": _text("Kind of the document.", enum=[KIND]),
            "metadata": _record("Identification.", {"name": _text("Name in reports.")}, "name"),
            "server": _record(
                "The API server.",
                {
                    "flags": {
                        "type": "object",
                        "description": "Flags of `pilothouse serve`, such as simulated-nodes: 1. Unless `controllers`"
                        " is given, only namespaces, service accounts and garbage collection are controlled.",
                    }
                },
            ),
            "setup": _array("Manifests before the operator starts: definitions, permissions, objects.", _OBJECT),
            "operator": _PROGRAM,
            "steps": _array("Steps of the user.", _STEP),
            "invariants": _array("Rules at every revision or at the end.", _INVARIANT),
            "ignore": _array(
                "Fields and kinds that the comparison of final states ignores, in addition to learned noise.",
                _record(
                    "Ignored fields.",
                    {
                        "kind": _text("Kind; default: every kind."),
                        "name": _text("Object name; a trailing * is a wildcard; default: every object."),
                        "path": _text("JSON pointer, * for any element; default: the whole object."),
                    },
                ),
            ),
            "perturbations": _record(
                "Selection of perturbations.",
                {
                    "include": _array("Kinds to run; default: all.", {"type": "string", "enum": [*PerturbationKind]}),
                    "exclude": _array("Kinds to leave out.", {"type": "string", "enum": [*PerturbationKind]}),
                },
            ),
            "settle": _record(
                "When a run is over.",
                {
                    "window": _duration("Virtual time without writes after which the run has settled; default: 1m."),
                    "limit": _duration("Virtual time after which a run that still writes is a livelock; default: 30m."),
                },
            ),
            "budget": _record(
                "Limits of the exploration.",
                {
                    "time": _duration("Real time; default: 2m."),
                    "runs": {"type": "integer", "minimum": 1, "description": "Number of perturbed runs."},
                },
            ),
            "seed": {"type": "integer", "description": "Seed of the order of equally likely perturbations."},
        },
        *("apiVersion", "kind", "metadata", "operator", "steps"),
    ),
}
"""JSON schema of explore.yaml."""


@dataclass(frozen=True, slots=True)
class Program:
    """`operator` of explore.yaml. Exactly one of manager, callable, command and controllers is set."""

    manager: str = ""
    callable: str = ""
    command: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    directory: Path = Path()
    env: Mapping[str, str] = dataclasses.field(default_factory=dict)
    service_account: str = ""
    quiet_for: float = 0.5
    start_timeout: float = 60.0


@dataclass(frozen=True, slots=True)
class Step:
    """One step. Exactly one of objects (apply), patch, delete, wait and advance is set."""

    name: str
    objects: tuple[Json, ...] = ()
    patch: Json | None = None
    delete: Json | None = None
    wait: Json | None = None
    advance: float = 0.0
    settle: bool = True


@dataclass(frozen=True, slots=True)
class Invariant:
    name: str
    api_version: str = ""
    kind: str = ""
    cel: str = ""
    python: str = ""
    at_end: bool = False
    message: str = ""


@dataclass(frozen=True, slots=True)
class Ignored:
    """Empty fields match everything."""

    kind: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A valid explore.yaml."""

    name: str
    program: Program
    steps: tuple[Step, ...]
    setup: tuple[Json, ...] = ()
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Flags of `pilothouse serve`, with underscores."""
    invariants: tuple[Invariant, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    kinds: frozenset[PerturbationKind] = frozenset(PerturbationKind)
    window: float = 60.0
    limit: float = 1800.0
    budget_seconds: float = 120.0
    budget_runs: int = 0
    """0: no limit."""
    seed: int = 0
    file: Path | None = None
    """Path of explore.yaml; None for scenarios that were built in Python."""


def load_scenario(file: Path) -> Scenario:
    """Read explore.yaml. Raises ScenarioError with every problem, OSError."""
    try:
        value = parse_yaml(file.read_bytes()).value
    except YamlError as error:
        raise ScenarioError(f"{file}: {error}") from None
    return read_scenario(value, folder=file.parent.absolute(), file=file.absolute())


def read_scenario(value: Any, *, folder: Path, file: Path | None = None) -> Scenario:
    """Return the scenario of a parsed explore.yaml. Raises ScenarioError with every problem."""
    problems = [*validate(value, SCHEMA)]
    if not problems:
        problems += _exactly_one("operator", value["operator"], ("manager", "callable", "command", "controllers"))
        for index, step in enumerate(value["steps"]):
            problems += _exactly_one(f"steps[{index}]", step, ("apply", "patch", "delete", "wait", "advance"))
        for index, rule in enumerate(value.get("invariants") or ()):
            problems += _exactly_one(f"invariants[{index}]", rule, ("cel", "python"))
    if problems:
        raise ScenarioError("\n".join(f"{file or 'scenario'}: {problem}" for problem in problems))
    settle, budget, chosen = (value.get(key) or {} for key in ("settle", "budget", "perturbations"))
    flags = (value.get("server") or {}).get("flags") or {}
    kinds = {PerturbationKind(kind) for kind in chosen.get("include") or [*PerturbationKind]}
    return Scenario(
        name=value["metadata"]["name"],
        program=_program(value["operator"], folder),
        steps=tuple(_step(step, index, folder) for index, step in enumerate(value["steps"])),
        setup=tuple(obj for item in value.get("setup") or () for obj in _objects(item, folder)),
        flags={name.replace("-", "_"): flag for name, flag in flags.items()},
        invariants=tuple(_invariant(rule) for rule in value.get("invariants") or ()),
        ignored=tuple(Ignored(**one) for one in value.get("ignore") or ()),
        kinds=frozenset(kinds - {PerturbationKind(kind) for kind in chosen.get("exclude") or ()}),
        window=_seconds(settle.get("window"), 60.0),
        limit=_seconds(settle.get("limit"), 1800.0),
        budget_seconds=_seconds(budget.get("time"), 120.0),
        budget_runs=budget.get("runs") or 0,
        seed=value.get("seed") or 0,
        file=file,
    )


def _program(value: Json, folder: Path) -> Program:
    return Program(
        manager=value.get("manager") or "",
        callable=value.get("callable") or "",
        command=tuple(value.get("command") or ()),
        controllers=tuple(value.get("controllers") or ()),
        directory=folder / (value.get("directory") or "."),
        env=dict(value.get("env") or {}),
        service_account=value.get("serviceAccount") or "",
        quiet_for=_seconds(value.get("quietFor"), 0.5),
        start_timeout=_seconds(value.get("startTimeout"), 60.0),
    )


def _step(value: Json, index: int, folder: Path) -> Step:
    verb = next(key for key in ("apply", "patch", "delete", "wait", "advance") if key in value)
    objects = tuple(_objects(value["apply"], folder)) if verb == "apply" else ()
    about = value[verb]
    if verb == "apply":
        about = ", ".join(f"{obj['kind']} {obj['metadata'].get('name', '')}" for obj in objects)
    elif verb != "advance":
        about = f"{about['kind']} {about['name']}"
    return Step(
        name=value.get("name") or f"{verb} {about}",
        objects=objects,
        patch=value.get("patch"),
        delete=value.get("delete"),
        wait=value.get("wait"),
        advance=_seconds(value.get("advance"), 0.0),
        settle=value.get("settle", True),
    )


def _invariant(value: Json) -> Invariant:
    return Invariant(
        name=value["name"],
        api_version=value.get("apiVersion") or "",
        kind=value.get("kind") or "",
        cel=value.get("cel") or "",
        python=value.get("python") or "",
        at_end=value.get("at") == "End",
        message=value.get("message") or "",
    )


def _objects(item: Any, folder: Path) -> Iterator[Json]:
    """Yield the objects of a file, of a list, or the object itself. Raises ScenarioError."""
    if isinstance(item, str):
        try:
            data = (folder / item).read_bytes()
            for _, document in split_documents(data):
                yield from _objects(parse_yaml(document).value, folder)
        except OSError as error:
            raise ScenarioError(f"cannot read the manifests {folder / item}: {error.strerror}") from None
        except YamlError as error:
            raise ScenarioError(f"{folder / item}: {error}") from None
    elif isinstance(item, list):
        for part in item:
            yield from _objects(part, folder)
    elif isinstance(item, dict) and str(item.get("kind", "")).endswith("List") and "items" in item:
        yield from _objects(item["items"], folder)
    elif isinstance(item, dict) and item.get("apiVersion") and item.get("kind") and item.get("metadata"):
        yield item
    else:
        raise ScenarioError(f"not an object with apiVersion, kind and metadata: {item!r:.200}")


def _seconds(duration: str | None, default: float) -> float:
    return parse_duration(duration) / 1e9 if duration else default


def _exactly_one(place: str, value: Json, keys: Sequence[str]) -> Iterator[str]:
    if len([key for key in keys if value.get(key)]) != 1:
        yield f"{place}: exactly one of {', '.join(keys)} is required"


_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "number": (int, float),
}


def validate(value: Any, schema: Json, place: str = "") -> Iterator[str]:
    """Yield the problems of a value, for the keywords that SCHEMA uses."""
    import re

    types = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type") or []
    here = place or "document"
    if types and not any(
        isinstance(value, _TYPES[name]) and not (name == "integer" and isinstance(value, bool)) for name in types
    ):
        yield f"{here}: must be of type {' or '.join(types)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{here}: must be one of {', '.join(map(str, schema['enum']))}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{here}: {value!r} does not match {schema['pattern']}"
    if "minimum" in schema and isinstance(value, int) and value < schema["minimum"]:
        yield f"{here}: must be at least {schema['minimum']}"
    if isinstance(value, dict):
        known, others = schema.get("properties") or {}, schema.get("additionalProperties", True)
        yield from (f"{here}: {name} is required" for name in schema.get("required") or () if name not in value)
        for name, part in value.items():
            inner = f"{place}.{name}" if place else str(name)
            if name in known:
                yield from validate(part, known[name], inner)
            elif others is False:
                yield f"{here}: unknown field {name}"
            elif isinstance(others, dict):
                yield from validate(part, others, inner)
    elif isinstance(value, list) and "items" in schema:
        for index, part in enumerate(value):
            yield from validate(part, schema["items"], f"{place}[{index}]")
