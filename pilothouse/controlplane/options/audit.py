"""Options of audit logging: policy, log file, webhook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.apiserver.audit.truncation import MAX_BATCH, MAX_EVENT
from pilothouse.controlplane.options.files import missing_files
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, DURATION, FLOAT, INT, STRING, flag

_BACKOFF = 10.0
_MODES = ("batch", "blocking", "blocking-strict")
_VERSION = "audit.k8s.io/v1"
_FORMATS = ("legacy", "json")


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """Batching flags of one backend."""

    mode: str
    buffer_size: int
    max_size: int
    max_wait: float
    throttle: bool
    qps: float
    burst: int

    def validate(self, plugin: str) -> Iterator[str]:
        if self.mode not in _MODES:
            yield f'invalid audit {plugin} mode {self.mode}, allowed modes are "{",".join(_MODES)}"'
        if self.mode != "batch":
            return
        limits: dict[str, float] = {"buffer size": self.buffer_size, "max batch size": self.max_size}
        if self.throttle:
            limits |= {"throttle QPS": self.qps, "throttle burst": self.burst}
        for name, value in limits.items():
            if value <= 0:
                yield f"invalid audit batch {plugin} {name} {value:g}, must be a positive number"


@dataclass(frozen=True, slots=True)
class TruncateOptions:
    enabled: bool
    max_event: int
    max_batch: int

    def validate(self, plugin: str) -> Iterator[str]:
        if self.enabled and self.max_event <= 0:
            yield f"invalid audit truncate {plugin} max event size {self.max_event}, must be a positive number"
        if self.enabled and self.max_batch < self.max_event:
            sizes = f"maxEventSize ({self.max_event}) is greater than maxBatchSize ({self.max_batch})"
            yield f"invalid audit truncate {plugin}: {sizes}"


@dataclass(frozen=True)
class AuditOptions:
    title: ClassVar[str] = "auditing"

    policy_file: str = flag("audit-policy-file", STRING, "", "A Policy: what is logged of which requests.")

    log_path: str = flag("audit-log-path", STRING, "", "The file to log to; '-' is standard output.")
    log_max_age: int = flag("audit-log-maxage", INT, 366, "Days after which rotated log files go; 0 for never.")
    log_max_backups: int = flag("audit-log-maxbackup", INT, 100, "How many rotated log files are kept; 0 for all.")
    log_max_size: int = flag("audit-log-maxsize", INT, 100, "Megabytes at which a log file is rotated.")
    log_compress: bool = flag("audit-log-compress", BOOL, False, "Compress rotated log files.")
    log_format: str = flag("audit-log-format", STRING, "json", "One of: legacy, json.")
    log_version: str = flag("audit-log-version", STRING, _VERSION, f"The version of logged events: {_VERSION}.")
    log_mode: str = flag("audit-log-mode", STRING, "blocking", f"How events are sent: {', '.join(_MODES)}.")
    log_buffer_size: int = flag("audit-log-batch-buffer-size", INT, 10000, "Events that may wait in batch mode.")
    log_batch_max_size: int = flag("audit-log-batch-max-size", INT, 1, "The most events of a batch.")
    log_batch_max_wait: float = flag("audit-log-batch-max-wait", DURATION, 0.0, "The longest that a batch waits.")
    log_throttle: bool = flag("audit-log-batch-throttle-enable", BOOL, False, "Limit the rate of batches.")
    log_throttle_qps: float = flag("audit-log-batch-throttle-qps", FLOAT, 0.0, "The most batches a second.")
    log_throttle_burst: int = flag("audit-log-batch-throttle-burst", INT, 0, "The most batches at once.")
    log_truncate: bool = flag("audit-log-truncate-enabled", BOOL, False, "Bound the size of events and batches.")
    log_max_event_size: int = flag("audit-log-truncate-max-event-size", INT, MAX_EVENT, "The most bytes of an event.")
    log_max_batch_size: int = flag("audit-log-truncate-max-batch-size", INT, MAX_BATCH, "The most bytes of a batch.")

    webhook_config_file: str = flag("audit-webhook-config-file", STRING, "", "A kubeconfig: where to send events to.")
    webhook_version: str = flag("audit-webhook-version", STRING, _VERSION, f"The version of sent events: {_VERSION}.")
    webhook_initial_backoff: float = flag(
        "audit-webhook-initial-backoff", DURATION, _BACKOFF, "How long to wait before events are sent again."
    )
    webhook_old_backoff: float = flag(
        "audit-webhook-batch-initial-backoff", DURATION, _BACKOFF, "The old name of --audit-webhook-initial-backoff."
    )
    webhook_mode: str = flag("audit-webhook-mode", STRING, "batch", f"How events are sent: {', '.join(_MODES)}.")
    webhook_buffer_size: int = flag("audit-webhook-batch-buffer-size", INT, 10000, "Events that may wait.")
    webhook_batch_max_size: int = flag("audit-webhook-batch-max-size", INT, 400, "The most events of a batch.")
    webhook_batch_max_wait: float = flag("audit-webhook-batch-max-wait", DURATION, 30.0, "The longest a batch waits.")
    webhook_throttle: bool = flag("audit-webhook-batch-throttle-enable", BOOL, True, "Limit the rate of batches.")
    webhook_throttle_qps: float = flag("audit-webhook-batch-throttle-qps", FLOAT, 10.0, "The most batches a second.")
    webhook_throttle_burst: int = flag("audit-webhook-batch-throttle-burst", INT, 15, "The most batches at once.")
    webhook_truncate: bool = flag("audit-webhook-truncate-enabled", BOOL, False, "Bound the size of what is sent.")
    webhook_max_event_size: int = flag(
        "audit-webhook-truncate-max-event-size", INT, MAX_EVENT, "The most bytes of an event."
    )
    webhook_max_batch_size: int = flag(
        "audit-webhook-truncate-max-batch-size", INT, MAX_BATCH, "The most bytes of a batch."
    )

    @property
    def backoff(self) -> float:
        """Initial retry delay: the current flag if set, else the deprecated flag."""
        given = self.webhook_initial_backoff != _BACKOFF
        return self.webhook_initial_backoff if given else self.webhook_old_backoff

    @property
    def log_batching(self) -> BatchOptions:
        return BatchOptions(
            mode=self.log_mode,
            buffer_size=self.log_buffer_size,
            max_size=self.log_batch_max_size,
            max_wait=self.log_batch_max_wait,
            throttle=self.log_throttle,
            qps=self.log_throttle_qps,
            burst=self.log_throttle_burst,
        )

    @property
    def webhook_batching(self) -> BatchOptions:
        return BatchOptions(
            mode=self.webhook_mode,
            buffer_size=self.webhook_buffer_size,
            max_size=self.webhook_batch_max_size,
            max_wait=self.webhook_batch_max_wait,
            throttle=self.webhook_throttle,
            qps=self.webhook_throttle_qps,
            burst=self.webhook_throttle_burst,
        )

    @property
    def log_truncation(self) -> TruncateOptions:
        return TruncateOptions(self.log_truncate, self.log_max_event_size, self.log_max_batch_size)

    @property
    def webhook_truncation(self) -> TruncateOptions:
        return TruncateOptions(self.webhook_truncate, self.webhook_max_event_size, self.webhook_max_batch_size)

    def validate(self) -> Iterator[str]:
        files = {"audit-policy-file": self.policy_file, "audit-webhook-config-file": self.webhook_config_file}
        yield from missing_files(files)
        if self.log_path:
            yield from self.log_batching.validate("log")
            yield from self.log_truncation.validate("log")
            if self.log_format not in _FORMATS:
                yield f'invalid audit log format {self.log_format}, allowed formats are "{",".join(_FORMATS)}"'
            limits = {"maxage": self.log_max_age, "maxbackup": self.log_max_backups, "maxsize": self.log_max_size}
            for name, value in limits.items():
                if value < 0:
                    yield f"--audit-log-{name} {value} can't be a negative number"
        if self.webhook_config_file:
            yield from self.webhook_batching.validate("webhook")
            yield from self.webhook_truncation.validate("webhook")
        for version in (self.log_version, self.webhook_version):
            if version != _VERSION:
                yield f'invalid group version, allowed versions are "{_VERSION}"'
