"""An extension API server: flunders, which may refer to one another, and a controller that counts who refers to whom.

python examples/flunders.py --register     # finds the cluster through the kubeconfig, and leaves it on Ctrl-C
kubectl create -f - <<< '{"apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder", "metadata": {"name": "a"}}'
kubectl get flunders
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pilothouse.builder import AGE, APIServer, Column, Default, Errors, Json, ObjectName, Reconciler, Resource, required

server = APIServer(group="wardle.example.com")


@server.resource(version="v1alpha1", short_names=["fl"])
class Flunder(Resource):
    """A flunder refers to another one, or to a fischer."""

    @dataclass
    class Spec:
        reference: str = ""
        """The name of what it refers to, in the same namespace."""
        reference_type: Literal["Flunder", "Fischer"] | None = None

    @dataclass
    class Status:
        referrers: Annotated[int, Default(0)] = 0
        """How many flunders refer to this one."""

    columns = (Column("Reference", ".spec.reference"), Column("Referrers", ".status.referrers", priority=1), AGE)
    selectable_fields = (".spec.reference",)

    def default(self) -> None:
        if self.spec.reference and not self.spec.reference_type:
            self.spec.reference_type = "Flunder"

    def validate(self, old: "Flunder | None") -> Errors:
        if self.spec.reference_type and not self.spec.reference:
            yield required("spec.reference", "a reference type needs a reference")


def referred(flunder: Json) -> list[str]:
    """The key of the flunder that this one refers to."""
    spec = flunder.get("spec", {})
    return [f"{flunder['metadata']['namespace']}/{spec['reference']}"] if spec.get("referenceType") == "Flunder" else []


@server.controller(Flunder, watches=[(Flunder, referred)])
class ReferrerController(Reconciler[Flunder]):
    async def reconcile(self, key: ObjectName) -> None:
        if flunder := self.get(key):
            others = self.lister(Flunder).namespace(key.namespace).list()
            flunder.status.referrers = sum(str(key) in referred(other) for other in others)
            await self.update_status(flunder)


if __name__ == "__main__":
    server.run()
