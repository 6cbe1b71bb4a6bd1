"""The CustomResourceDefinition of SimulatedBehavior."""

from __future__ import annotations

from pilothouse.kinds.definitions import flag_field, printer_column, text_field
from pilothouse.machinery.objects import Json
from pilothouse.nodes.behavior.behaviors import SIMULATED_BEHAVIORS
from pilothouse.nodes.behavior.model import PROBES

_NAME = f"{SIMULATED_BEHAVIORS.resource}.{SIMULATED_BEHAVIORS.group}"


def _number(description: str, **more: object) -> Json:
    return {"type": "integer", "format": "int32", "description": description, **more}


def _duration(description: str) -> Json:
    pattern = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$"
    return text_field(f"{description} A duration such as 500ms or 1m30s.", maxLength=32, pattern=pattern)


def _object(description: str, **properties: Json) -> Json:
    return {"type": "object", "description": description, "properties": properties}


def _set(description: str, **item: object) -> Json:
    items = {"type": "string", **item}
    return {"type": "array", "description": description, "items": items, "x-kubernetes-list-type": "set"}


def _label_selector(description: str) -> Json:
    labels = {"type": "object", "additionalProperties": {"type": "string"}}
    expression: Json = {
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {"type": "string"},
            "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
            "values": {"type": "array", "items": {"type": "string"}},
        },
    }
    return _object(description, matchLabels=labels, matchExpressions={"type": "array", "items": expression})


_SELECTOR = _object(
    "Whom it is about. What is left out stands for all.",
    namespaces=_set("The namespaces of the pods."),
    podSelector=_label_selector("The labels of the pods."),
    containers=_set("The names of containers."),
    nodes=_set("The names of nodes: of those that the pods are on, and of those that `node` is about."),
    nodeSelector=_label_selector("The labels of those nodes."),
)

_ANSWER = _object(
    "An answer to commands that begin like this.",
    command={"type": "array", "description": "The first words of the command.", "items": {"type": "string"}},
    stdout=text_field("What the command writes."),
    stderr=text_field("What it writes as errors."),
    exitCode=_number("What it ends with.", minimum=0, maximum=255),
)

_HTTP_ANSWER = _object(
    "An answer to HTTP requests for a path and the paths below it.",
    path=text_field("The path. Default: every path.", maxLength=1024, pattern="^/"),
    port=_number("The port, which the containers open. Default: every open port.", minimum=1, maximum=65535),
    status=_number("The status code; probes fail below 200 and from 400. Default: 200.", minimum=200, maximum=599),
    body=text_field("The body.", maxLength=1 << 16),
    contentType=text_field("The media type of the body. Default: text/plain.", maxLength=256),
)

_CONTAINER = _object(
    "What containers do.",
    startAfter=_duration("How long it takes until they are created."),
    imagePullError=text_field("The image can not be pulled, and why: ErrImagePull and ImagePullBackOff."),
    exitAfter=_duration("How long they run before they end; restartPolicy says whether they run again."),
    exitCode=_number("What they end with.", minimum=0, maximum=255),
    oomKilled=flag_field("They end because they take too much memory: exit code 137, OOMKilled."),
    exitTimes=_number("How often they end; from then on they stay.", minimum=1),
    failingProbes=_set("The probes that fail.", enum=[*PROBES]),
    readyAfter=_duration("How long it takes until they are ready, whatever their probes say."),
    logs=text_field("What they have logged.", maxLength=1 << 18),
    exec={"type": "array", "description": "What they answer to commands.", "items": _ANSWER, "maxItems": 100},
    http={"type": "array", "description": "What they answer to HTTP.", "items": _HTTP_ANSWER, "maxItems": 100},
    cpu=text_field("The processors they use: a quantity such as 250m, or a share of their request such as 50%."),
    memory=text_field("The memory they use, likewise."),
)

_NODE = _object(
    "What nodes do.",
    notReady=flag_field("They say that they are not ready."),
    gone=flag_field("Nothing is heard of them: no heartbeats, and their pods stay as they are."),
    memoryPressure=flag_field("They are low on memory."),
    diskPressure=flag_field("They are low on disk space."),
    pidPressure=flag_field("They are low on process ids."),
    networkUnavailable=flag_field("Their network is not set up."),
)

_SPEC = _object(
    "What simulated pods or nodes do.",
    priority=_number("Where several say something about the same thing, the greatest goes first."),
    selector=_SELECTOR,
    container=_CONTAINER,
    node=_NODE,
)


DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": _NAME},
    "spec": {
        "group": SIMULATED_BEHAVIORS.group,
        "scope": "Cluster",
        "names": {
            "plural": SIMULATED_BEHAVIORS.resource,
            "singular": "simulatedbehavior",
            "kind": "SimulatedBehavior",
            "listKind": "SimulatedBehaviorList",
            "shortNames": ["simb"],
        },
        "versions": [
            {
                "name": SIMULATED_BEHAVIORS.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "SimulatedBehavior says what simulated pods or nodes do.",
                        "required": ["spec"],
                        "properties": {"spec": _SPEC},
                    }
                },
                "additionalPrinterColumns": [
                    printer_column("Priority", ".spec.priority", "integer"),
                    printer_column("Namespaces", ".spec.selector.namespaces"),
                    printer_column("Pods", ".spec.selector.podSelector.matchLabels"),
                    printer_column("Nodes", ".spec.selector.nodes"),
                    printer_column("Exit-After", ".spec.container.exitAfter"),
                    printer_column("Failing-Probes", ".spec.container.failingProbes", priority=1),
                    printer_column("Age", ".metadata.creationTimestamp", "date"),
                ],
            }
        ],
    },
}
