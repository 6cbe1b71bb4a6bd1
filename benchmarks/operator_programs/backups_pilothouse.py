"""Backups with pilothouse.operator: a ConfigMap each, a condition, a clean-up, and a validating webhook."""

from pilothouse.operator import Condition, Denied, Manager, Object, Reconciler, kind, validating


@kind(group="demo.example.com", version="v1", status=True)
class Backup(Object):
    keep: int = 7


class BackupReconciler(Reconciler[Backup]):
    owns = ("v1 ConfigMap",)
    concurrency = 16
    finalizer = "demo.example.com/backup"

    @validating
    def check(self, backup: Backup) -> None:
        if backup.keep > 30:
            raise Denied("keep must be at most 30", code=422)

    async def reconcile(self, backup: Backup) -> None:
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": backup.metadata.name}}
        await self.apply(backup, child | {"data": {"keep": str(backup.keep)}})
        backup.status.conditions.set(Condition("Ready", True, "Applied"))

    async def finalize(self, backup: Backup) -> None:
        meta = {"name": f"deleted-{backup.metadata.name}", "namespace": "mirror"}
        await self.apply(None, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta})


Manager([BackupReconciler]).run()
