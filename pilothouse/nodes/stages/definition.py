"""The CustomResourceDefinition of kwok's Stage."""

from __future__ import annotations

from pilothouse.machinery.objects import Json
from pilothouse.nodes.stages.stage import STAGES

DEFINITION: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{STAGES.resource}.{STAGES.group}"},
    "spec": {
        "group": STAGES.group,
        "scope": "Cluster",
        "names": {"plural": STAGES.resource, "singular": "stage", "kind": "Stage", "listKind": "StageList"},
        "versions": [
            {
                "name": STAGES.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "Stage says what becomes of simulated pods or nodes, as kwok has it.",
                        "required": ["spec"],
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}
