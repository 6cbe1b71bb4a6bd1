"""A Site gets a Service. Its status says when the Site can be reached.

The bug: a failed write is logged and forgotten, and the status says Ready without a Service.
"""

from pilothouse.client import Client
from pilothouse.errors import StatusError
from pilothouse.operator import GenerationChanged, Json, Manager, Object, Reconciler, kind


@kind(group="explore.example.com", version="v1", status=True)
class Site(Object):
    port: int = 80


def service_for(site: Site) -> Json:
    spec = {"selector": {"site": site.metadata.name}, "ports": [{"port": site.port}], "clusterIP": "None"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": site.metadata.name}, "spec": spec}


class SiteReconciler(Reconciler[Site]):
    owns = ["v1 Service"]
    predicates = [GenerationChanged]

    async def reconcile(self, site: Site) -> None:
        try:
            await self.apply(site, service_for(site))
        except StatusError as error:
            self.log.warning("no Service: %s", error)
        site.status["phase"] = "Ready"


def manager(client: Client | None = None) -> Manager:
    return Manager(reconcilers=[SiteReconciler], config=client)


if __name__ == "__main__":
    manager().run()
