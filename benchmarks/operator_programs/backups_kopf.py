"""Backups with kopf and the official client: a ConfigMap each, a condition, a clean-up, and a validating webhook."""

# mypy: ignore-errors

import os
from datetime import UTC, datetime

import kopf
from kubernetes import client

BACKUPS = ("demo.example.com", "v1", "backups")


@kopf.on.startup()
def configure(settings, **_):
    certificate, key = os.environ["WEBHOOK_CERTIFICATE"], os.environ["WEBHOOK_KEY"]
    settings.admission.server = kopf.WebhookServer(
        host="127.0.0.1", certfile=certificate, pkeyfile=key, cafile=certificate
    )
    settings.admission.managed = "backups.demo.example.com"
    settings.persistence.finalizer = "demo.example.com/backup"


@kopf.on.validate(*BACKUPS)
def check(spec, **_):
    if spec.get("keep", 7) > 30:
        raise kopf.AdmissionError("keep must be at most 30", code=422)


@kopf.on.resume(*BACKUPS)
@kopf.on.create(*BACKUPS)
@kopf.on.update(*BACKUPS)
def apply(name, namespace, spec, meta, status, patch, **_):
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"keep": str(spec["keep"])}}
    kopf.adopt(child)
    client.CoreV1Api().patch_namespaced_config_map(
        name, namespace, child, field_manager="backups", force=True, _content_type="application/apply-patch+yaml"
    )
    ready = {"type": "Ready", "status": "True", "reason": "Applied", "message": ""}
    old = next(iter(status.get("conditions", ())), {"lastTransitionTime": f"{datetime.now(UTC):%FT%TZ}"})
    ready["lastTransitionTime"] = old["lastTransitionTime"]
    ready["observedGeneration"] = meta["generation"]
    patch.status["conditions"] = [ready]


@kopf.on.delete(*BACKUPS)
def clean_up(name, **_):
    record = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"deleted-{name}"}}
    client.CoreV1Api().patch_namespaced_config_map(
        f"deleted-{name}", "mirror", record, field_manager="backups", force=True,
        _content_type="application/apply-patch+yaml",
    )  # fmt: skip
