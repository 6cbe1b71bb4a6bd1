"""Operators: declare kinds as classes, write reconcilers, and run a manager.

class BackupReconciler(Reconciler[Backup]):
    owns = ["batch/v1 CronJob"]

    async def reconcile(self, backup: Backup) -> Result | None:
        await self.apply(backup, cronjob_for(backup))

Manager(reconcilers=[BackupReconciler]).run()

`__init__.pyi` lists the public names. An operator imports no part of the server.
"""

from __future__ import annotations

from pilothouse.machinery.lazy_names import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
