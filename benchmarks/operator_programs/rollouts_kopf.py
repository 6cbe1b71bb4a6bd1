"""Rollouts with kopf and the official client: a Deployment each, whose progress is the status of the Rollout."""

# mypy: ignore-errors

import kopf
from kubernetes import client

ROLLOUTS = ("demo.example.com", "v1", "rollouts")


@kopf.on.resume(*ROLLOUTS)
@kopf.on.create(*ROLLOUTS)
@kopf.on.update(*ROLLOUTS, field="spec")
def apply(name, namespace, spec, **_):
    labels = {"rollout": name}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": spec["image"]}]},
            },
        },
    }
    kopf.adopt(deployment)
    client.AppsV1Api().patch_namespaced_deployment(
        name, namespace, deployment, field_manager="rollouts", force=True, _content_type="application/apply-patch+yaml"
    )


@kopf.on.event("apps", "v1", "deployments", labels={"rollout": kopf.PRESENT})
def progress(type, name, namespace, spec, status, meta, **_):
    current = status.get("observedGeneration") == meta.get("generation")
    done = current and status.get("updatedReplicas", 0) >= spec["replicas"]
    image = spec["template"]["spec"]["containers"][0]["image"]
    if type != "DELETED":
        patch = {"status": {"phase": "Complete" if done else "Progressing", "image": image}}
        client.CustomObjectsApi().patch_namespaced_custom_object_status(
            *ROLLOUTS[:2], namespace, "rollouts", name, patch
        )
