"""A Probe reports in its status when the operator last looked at the target.

Fixed: the time changes with the target only. A reconcile without changes writes nothing.
"""

from datetime import UTC, datetime

from pilothouse.client import Client
from pilothouse.operator import Manager, Object, Reconciler, kind


@kind(group="explore.example.com", version="v1", status=True)
class Probe(Object):
    target: str = ""


class ProbeReconciler(Reconciler[Probe]):
    async def reconcile(self, probe: Probe) -> None:
        if probe.status.get("target") != probe.target:
            probe.status["target"] = probe.target
            probe.status["lastProbeTime"] = datetime.now(UTC).isoformat()


def manager(client: Client | None = None) -> Manager:
    return Manager(reconcilers=[ProbeReconciler], config=client)


if __name__ == "__main__":
    manager().run()
