"""A Database gets a Secret with its password, and a ConfigMap that tells clients where to connect.

The bug: the Secret is taken as proof that everything was installed. An operator that ends between the two writes
never creates the ConfigMap.
"""

from pilothouse.client import Client
from pilothouse.operator import Json, Manager, Object, Reconciler, kind


@kind(group="explore.example.com", version="v1", status=True)
class Database(Object):
    engine: str = "postgres"


def secret_for(database: Database) -> Json:
    data = {"username": "admin", "password": "changeme"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": database.metadata.name}, "stringData": data}


def config_for(database: Database) -> Json:
    data = {"engine": database.engine, "host": f"{database.metadata.name}.{database.metadata.namespace}.svc"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": database.metadata.name}, "data": data}


class DatabaseReconciler(Reconciler[Database]):
    owns = ["v1 Secret", "v1 ConfigMap"]

    async def reconcile(self, database: Database) -> None:
        if self.get("v1 Secret", database.metadata.name, database.metadata.namespace) is not None:
            return  # installed
        await self.apply(database, secret_for(database))
        await self.apply(database, config_for(database))


def manager(client: Client | None = None) -> Manager:
    return Manager(reconcilers=[DatabaseReconciler], config=client)


if __name__ == "__main__":
    manager().run()
