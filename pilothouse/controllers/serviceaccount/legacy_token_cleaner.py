"""legacy-serviceaccount-token-cleaner-controller: invalidates, then deletes, unused auto-generated tokens.

Only secrets referenced by an account were auto-generated; manually created secrets are kept. Dates are compared in
label format: 2026-05-01.
"""

from __future__ import annotations

import logging
from dataclasses import field
from datetime import UTC, date, datetime, timedelta

from pilothouse.client.cache.shared_informer import wait_for_cache_sync
from pilothouse.client.clock import utc_now
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.wait import until
from pilothouse.controllers.context import ControllerContext, ObjectSelection
from pilothouse.controllers.resources import CONFIG_MAPS, PODS, SECRETS, SERVICE_ACCOUNTS
from pilothouse.controllers.serviceaccount import token_secrets
from pilothouse.kinds.deletion import is_deleting
from pilothouse.kinds.references import secret_names
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import (
    Json,
    annotations_of,
    labels_of,
    metadata,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.times import is_date, parse_time

logger = logging.getLogger(__name__)

SYNC_INTERVAL = 24 * 3600.0
_TRACKING = "kube-apiserver-legacy-service-account-token-tracking"


async def run(context: ControllerContext) -> None:
    cleaner = _Cleaner(context)
    await cleaner.wait_synced()
    await until(cleaner.clean, SYNC_INTERVAL, clock=context.clock)


@dataclass(frozen=True, slots=True)
class _CleanUp:
    """Time thresholds of one pass over all secrets."""

    now: datetime
    unused_since: datetime
    mounted: dict[str, set[str]] = field(default_factory=dict)
    """Secrets used by pods, by namespace; filled lazily."""

    @property
    def keep_from(self) -> str:
        return self.unused_since.date().isoformat()


class _Cleaner:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._accounts = context.informer(SERVICE_ACCOUNTS)
        self._secrets = context.informer(SECRETS, ObjectSelection(field_selector=token_secrets.ARE_TOKENS))
        self._period = timedelta(seconds=context.config.legacy_service_account_token_clean_up_period)

    async def wait_synced(self) -> None:
        await wait_for_cache_sync(self._accounts, self._secrets)

    async def clean(self) -> None:
        now = utc_now(self._context.clock)
        maps = self._context.client.for_resource(CONFIG_MAPS, namespace="kube-system")
        since = ((await maps.get(_TRACKING)).get("data") or {}).get("since") or ""
        first_full_day = datetime.combine(date.fromisoformat(since), datetime.min.time(), UTC) + timedelta(days=1)
        if now < first_full_day + self._period:
            return
        clean_up = _CleanUp(now, now - self._period)
        for secret in self._secrets.indexer.list():
            try:
                if await self._is_unused(secret, clean_up):
                    secrets = self._context.client.for_resource(SECRETS, namespace=namespace_of(secret))
                    name, invalid_since = name_of(secret), labels_of(secret).get(token_secrets.INVALID_SINCE, "")
                    if not is_date(invalid_since):
                        today = clean_up.now.date().isoformat()
                        logger.info(
                            "Mark the auto-generated service account token as invalid: %s/%s",
                            namespace_of(secret),
                            name,
                        )
                        await secrets.patch(
                            name, {"metadata": {"uid": uid_of(secret), "labels": {token_secrets.INVALID_SINCE: today}}}
                        )
                    elif invalid_since < clean_up.keep_from:
                        logger.info("Delete auto-generated service account token: %s/%s", namespace_of(secret), name)
                        try:
                            await secrets.delete(name, DeleteOptions(resource_version=resource_version_of(secret)))
                        except (Conflict, NotFound):
                            continue
            except StatusError as error:
                logger.error("can not clean up secret %s/%s: %s", namespace_of(secret), name_of(secret), error)

    async def _is_unused(self, secret: Json, clean_up: _CleanUp) -> bool:
        created = parse_time(metadata(secret).get("creationTimestamp") or "")
        if created is None or created >= clean_up.unused_since or is_deleting(secret):
            return False
        last_used = labels_of(secret).get(token_secrets.LAST_USED)
        if last_used is not None and (not is_date(last_used) or last_used >= clean_up.keep_from):
            return False
        return self._was_generated(secret) and name_of(secret) not in await self._mounted(
            namespace_of(secret), clean_up
        )

    def _was_generated(self, secret: Json) -> bool:
        annotations = annotations_of(secret)
        account = self._accounts.indexer.get_by_key(
            f"{namespace_of(secret)}/{annotations.get(token_secrets.ACCOUNT_NAME, '')}"
        )
        if account is None or annotations.get(token_secrets.ACCOUNT_UID, "") not in ("", uid_of(account)):
            return False
        return token_secrets.refers_to(account, name_of(secret))

    async def _mounted(self, namespace: str, clean_up: _CleanUp) -> set[str]:
        """Return the secrets used by pods. Pods are listed once a day instead of cached."""
        if namespace not in clean_up.mounted:
            names: set[str] = set()
            async for page in self._context.client.for_resource(PODS, namespace=namespace).pages():
                for pod in page["items"]:
                    names.update(secret_names(pod.get("spec") or {}))
            clean_up.mounted[namespace] = names
        return clean_up.mounted[namespace]
