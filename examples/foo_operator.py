"""The sample controller as an operator: definition, Deployment, status, finalizer and leader election.

python examples/foo_operator.py       # finds the server through the kubeconfig or the pod it runs in
"""

from typing import Annotated

from pilothouse.builder import Maximum, Minimum
from pilothouse.operator import Condition, Json, Manager, Object, Reconciler, kind


@kind(group="samplecontroller.example.com", version="v1alpha1", status=True)
class Foo(Object):
    deployment_name: str
    replicas: Annotated[int, Minimum(1), Maximum(10)] = 1


def deployment_for(foo: Foo) -> Json:
    labels = {"app": "nginx", "controller": foo.metadata.name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]}}
    spec = {"replicas": foo.replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": foo.deployment_name}, "spec": spec}


class FooReconciler(Reconciler[Foo]):
    owns = ["apps/v1 Deployment"]
    finalizer = "samplecontroller.example.com/foo"

    async def reconcile(self, foo: Foo) -> None:
        deployment = await self.apply(foo, deployment_for(foo))
        foo.status["availableReplicas"] = deployment.get("status", {}).get("availableReplicas", 0)
        foo.status.conditions.set(Condition("Ready", True, "DeploymentApplied"))

    async def finalize(self, foo: Foo) -> None:
        self.event(foo, "Finalized", "the Deployment goes with its Foo")


if __name__ == "__main__":
    Manager(reconcilers=[FooReconciler], install_crds=True, leader_election=True).run()
