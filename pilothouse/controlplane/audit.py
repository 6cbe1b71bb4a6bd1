"""Construction of audit logging from the options: policy, log backend, webhook backend."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from pilothouse.apiserver.audit.backends import (
    BATCH,
    BLOCKING_STRICT,
    Backend,
    BatchBackend,
    BatchConfig,
    BlockingBackend,
    UnionBackend,
)
from pilothouse.apiserver.audit.log_backend import LogBackend, RotatedFile
from pilothouse.apiserver.audit.policy import read_policy
from pilothouse.apiserver.audit.truncation import Truncation
from pilothouse.apiserver.filters.audit import Auditing
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.rest.errors import InvalidResponse
from pilothouse.client.rest.webhook import GenericWebhook
from pilothouse.controlplane.options.audit import AuditOptions, BatchOptions, TruncateOptions
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Audit:
    auditing: Auditing
    run: Callable[[], Coroutine[Any, Any, None]]
    """Send buffered events of the backends until cancelled."""


def build_audit(options: AuditOptions) -> Audit | None:
    """Build audit logging; None without a backend. Raises OSError, ValueError."""
    policy = read_policy(Path(options.policy_file))
    backends: list[Backend] = []
    webhook: GenericWebhook | None = None
    if options.log_path:
        backends.append(_log_backend(options))
    if options.webhook_config_file:
        file, backoff = Path(options.webhook_config_file), options.backoff
        webhook = GenericWebhook.load(file, initial_backoff=backoff, may_help=lambda error: True)
        backends.append(_webhook_backend(webhook, options))
    if not backends:
        return None
    union = UnionBackend(backends)

    async def run() -> None:
        try:
            await union.run()
        finally:
            if webhook is not None:
                await webhook.close()

    return Audit(Auditing(policy, union), run)


def _log_backend(options: AuditOptions) -> Backend:
    file = None
    if options.log_path != "-":
        file = RotatedFile(
            Path(options.log_path),
            max_bytes=options.log_max_size * _MEGABYTE,
            max_backups=options.log_max_backups,
            max_age=options.log_max_age,
            compress=options.log_compress,
        )
    backend = LogBackend.open(options.log_path, file, legacy=options.log_format == "legacy")
    truncation = _truncation(options.log_truncation)

    async def send_at_once(events: list[Json]) -> None:
        backend.send(events)

    if options.log_mode != BATCH:
        strict = options.log_mode == BLOCKING_STRICT
        return BlockingBackend("log", send_at_once, strict=strict, truncation=truncation)

    async def send(events: list[Json]) -> None:
        await asyncio.to_thread(backend.send, events)

    return BatchBackend("log", send, _batching(options.log_batching), truncation)


def _webhook_backend(webhook: GenericWebhook, options: AuditOptions) -> Backend:
    async def send(events: list[Json]) -> None:
        # The webhook may respond with an empty body.
        with suppress(InvalidResponse):
            await webhook.post({"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": events})

    truncation = _truncation(options.webhook_truncation)
    if options.webhook_mode != BATCH:
        return BlockingBackend("webhook", send, strict=options.webhook_mode == BLOCKING_STRICT, truncation=truncation)
    return BatchBackend("webhook", send, _batching(options.webhook_batching), truncation)


def _batching(options: BatchOptions) -> BatchConfig:
    bucket = TokenBucket(options.qps, options.burst) if options.throttle else None
    return BatchConfig(
        buffer_size=options.buffer_size,
        max_size=options.max_size,
        max_wait=options.max_wait,
        throttle=bucket.wait if bucket else None,
    )


def _truncation(options: TruncateOptions) -> Truncation | None:
    return Truncation(options.max_event, options.max_batch) if options.enabled else None
