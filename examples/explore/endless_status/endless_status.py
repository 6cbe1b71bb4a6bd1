"""A Probe reports in its status when the operator last looked at the target.

The bug: every reconcile writes a new time. The write is an event of the Probe, the event starts the next reconcile, and
so on, as fast as the API server answers.
"""

from datetime import UTC, datetime

from pilothouse.client import Client
from pilothouse.operator import Manager, Object, Reconciler, kind


@kind(group="explore.example.com", version="v1", status=True)
class Probe(Object):
    target: str = ""


class ProbeReconciler(Reconciler[Probe]):
    async def reconcile(self, probe: Probe) -> None:
        probe.status["target"] = probe.target
        probe.status["lastProbeTime"] = datetime.now(UTC).isoformat()


def manager(client: Client | None = None) -> Manager:
    return Manager(reconcilers=[ProbeReconciler], config=client)


if __name__ == "__main__":
    manager().run()
