"""Auditing as the options ask for it: a policy, a log file, a webhook."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
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
from pilothouse.apiserver.audit.log_backend import LogBackend
from pilothouse.apiserver.audit.policy import read_policy
from pilothouse.apiserver.audit.rotation import RotatedFile
from pilothouse.apiserver.audit.truncation import Truncation
from pilothouse.apiserver.filters.audit import Auditing
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.flowcontrol import TokenBucket
from pilothouse.client.rest.client import RESTClient
from pilothouse.client.rest.connect import connect
from pilothouse.client.rest.errors import ConnectionFailed, InvalidResponse
from pilothouse.controlplane.options.audit import AuditOptions, BatchOptions, TruncateOptions
from pilothouse.machinery.errors import InternalError, ServiceUnavailable, Timeout, TooManyRequests
from pilothouse.machinery.objects import Json

_MEGABYTE = 1024 * 1024
_ATTEMPTS = 5
_FACTOR = 1.5
_AGAIN = (ConnectionFailed, InternalError, ServiceUnavailable, Timeout, TooManyRequests)


@dataclass(frozen=True, slots=True)
class Audit:
    auditing: Auditing
    run: Callable[[], Coroutine[Any, Any, None]]
    """Sends what the backends have gathered, until cancelled."""


def build_audit(options: AuditOptions) -> Audit | None:
    """None where there is nowhere to log to. Raises OSError, ValueError."""
    policy = read_policy(Path(options.policy_file))
    backends: list[Backend] = []
    if options.log_path:
        backends.append(_log_backend(options))
    if options.webhook_config_file:
        backends.append(_webhook_backend(options))
    if not backends:
        return None
    union = UnionBackend(backends)
    return Audit(Auditing(policy, union), union.run)


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
    if options.log_mode != BATCH:
        strict = options.log_mode == BLOCKING_STRICT
        return BlockingBackend("log", backend.send, strict=strict, truncation=truncation)

    async def send(events: list[Json]) -> None:
        await asyncio.to_thread(backend.send, events)

    return BatchBackend("log", send, _batching(options.log_batching), truncation)


def _webhook_backend(options: AuditOptions) -> Backend:
    """Whatever the mode, no request waits for the webhook: blocking would let it hold up the whole server."""
    client = connect(load_kubeconfig(Path(options.webhook_config_file)))
    webhook = _Webhook(client, initial_backoff=options.webhook_initial_backoff)
    batching = _batching(options.webhook_batching)
    return BatchBackend("webhook", webhook.send, batching, _truncation(options.webhook_truncation))


class _Webhook:
    def __init__(self, client: RESTClient, *, initial_backoff: float) -> None:
        self._client = client
        self._initial_backoff = initial_backoff

    async def send(self, events: list[Json]) -> None:
        """Again when that may help. Raises what the last attempt did."""
        body = {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": events}
        pause = self._initial_backoff
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._client.request("POST", "", body=body)
            except InvalidResponse:
                return  # it need not answer anything
            except _AGAIN:
                if attempt == _ATTEMPTS:
                    raise
                await asyncio.sleep(pause)
                pause *= _FACTOR
            else:
                return


def _batching(options: BatchOptions) -> BatchConfig:
    bucket = TokenBucket(options.qps, options.burst) if options.throttle else None
    return BatchConfig(
        buffer_size=options.buffer_size,
        max_size=options.max_size if options.mode == BATCH else 1,
        max_wait=options.max_wait if options.mode == BATCH else 0.0,
        throttle=bucket.wait if bucket else None,
    )


def _truncation(options: TruncateOptions) -> Truncation | None:
    return Truncation(options.max_event, options.max_batch) if options.enabled else None
