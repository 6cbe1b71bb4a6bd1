"""Jobs as clients send them, and as the server would store them."""

from __future__ import annotations

from typing import Any

from rules import decoded

from pilothouse.client import Json
from pilothouse.kube.batch.jobs import JOBS

STRATEGY = JOBS.strategy
INDEXED: Json = {"completionMode": "Indexed", "completions": 5}


def job(labels: Json | None = None, restart: str = "Never", meta: Json | None = None, **spec: Any) -> Json:
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"restartPolicy": restart, "containers": [{"name": "c", "image": "i"}]},
    }
    return {"metadata": {"name": "j", **(meta or {})}, "spec": {"template": template, **spec}}


def created(obj: Json) -> Json:
    made = decoded(JOBS, obj)
    made["metadata"] |= {"uid": "u-1", "resourceVersion": "1"}
    STRATEGY.prepare_for_create(made)
    return made
