"""Rollouts with pilothouse.operator: a Deployment each, whose progress is the status of the Rollout."""

from pilothouse.client import Json
from pilothouse.operator import Manager, Object, Reconciler, kind


@kind(group="demo.example.com", version="v1", status=True)
class Rollout(Object):
    image: str
    replicas: int = 1


class RolloutReconciler(Reconciler[Rollout]):
    owns = ("apps/v1 Deployment",)
    concurrency = 16

    async def reconcile(self, rollout: Rollout) -> None:
        deployment = await self.apply(rollout, deployment_of(rollout))
        status = deployment.get("status", {})
        current = status.get("observedGeneration") == deployment["metadata"]["generation"]
        done = current and status.get("updatedReplicas", 0) >= rollout.replicas
        rollout.status["phase"] = "Complete" if done else "Progressing"
        rollout.status["image"] = rollout.image


def deployment_of(rollout: Rollout) -> Json:
    labels = {"rollout": rollout.metadata.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": rollout.metadata.name, "labels": labels},
        "spec": {
            "replicas": rollout.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "app", "image": rollout.image}]},
            },
        },
    }


Manager([RolloutReconciler]).run()
