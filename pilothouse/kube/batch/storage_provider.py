"""The storages of the group batch."""

from __future__ import annotations

from dataclasses import replace

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.batch.cronjobs import CRON_JOBS, CronJobStatusStrategy
from pilothouse.kube.batch.job_storage import JobStorage
from pilothouse.kube.batch.jobs import JOBS, JobStatusStrategy, convert_job_field
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion


class BatchStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        jobs, cron_jobs = registries.open(JOBS), registries.open(CRON_JOBS)
        resources = [
            replace(served(jobs, JobStorage(jobs)), convert_field=convert_job_field),
            served(jobs, StatusStore(jobs, JobStatusStrategy()), subresource="status"),
            served(cron_jobs),
            served(cron_jobs, StatusStore(cron_jobs, CronJobStatusStrategy()), subresource="status"),
        ]
        return APIGroup("batch", [APIVersion(GroupVersion("batch", "v1"), resources)])
