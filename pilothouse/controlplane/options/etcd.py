"""Options of the store. Without --etcd-servers, objects are in a SQLite file in the data directory."""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import join, normpath
from typing import ClassVar
from urllib.parse import urlsplit

from pilothouse.apiserver.storage.interface import DEFAULT_ROOT, StoreCapabilities
from pilothouse.controlplane.options.files import missing_files
from pilothouse.controlplane.options.pilothouse import TaskGroup
from pilothouse.controlplane.storage import BACKENDS, backend_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, DURATION, INT, STRING, STRINGS, FlagType, flag

_KEY_PREFIX = FlagType("string", lambda text: normpath(join("/", text)))
"""Key prefix; a leading slash is added, as upstream's store does."""


@dataclass(frozen=True)
class EtcdOptions:
    title: ClassVar[str] = "etcd"

    servers: tuple[str, ...] = flag(
        "etcd-servers",
        STRINGS,
        (),
        "URLs of the etcd members, comma separated. Without them the store in --data-dir is used.",
    )
    cafile: str = flag("etcd-cafile", STRING, "", "The CA that signed the certificates of the etcd members.")
    certfile: str = flag("etcd-certfile", STRING, "", "The client certificate to show to etcd.")
    keyfile: str = flag("etcd-keyfile", STRING, "", "The key of --etcd-certfile.")
    prefix: str = flag("etcd-prefix", _KEY_PREFIX, DEFAULT_ROOT, "What every key in the store begins with.")
    compaction_interval: float = flag(
        "etcd-compaction-interval",
        DURATION,
        300.0,
        "How often history older than one interval is dropped. 0 keeps all of it.",
    )
    healthcheck_timeout: float = flag(
        "etcd-healthcheck-timeout", DURATION, 2.0, "How long the store may take to answer a health check."
    )
    readycheck_timeout: float = flag(
        "etcd-readycheck-timeout", DURATION, 2.0, "How long the store may take to answer a check of readiness."
    )
    lease_reuse_duration: int = flag(
        "lease-reuse-duration-seconds", INT, 60, "For how many seconds keys with a time to live share a lease of etcd."
    )
    storage_backend: str = flag(
        "storage-backend", STRING, "", "'etcd3' with --etcd-servers, 'sqlite' without; follows from them if empty."
    )
    storage_media_type: str = flag(
        "storage-media-type", STRING, "application/json", "The form in which objects are stored: application/json."
    )
    unsafe_no_fsync: bool = flag(
        "unsafe-no-fsync",
        BOOL,
        False,
        "Acknowledge writes before they are on disk; a crash of the machine loses data.",
        group=TaskGroup.TESTING,
    )
    watch_cache: bool = flag("watch-cache", BOOL, True, "Serve reads and watches from memory.")

    encryption_provider_config: str = flag(
        "encryption-provider-config", STRING, "", "An EncryptionConfiguration: which objects are encrypted, and how."
    )
    encryption_reload: bool = flag(
        "encryption-provider-config-automatic-reload", BOOL, False, "Follow --encryption-provider-config as it changes."
    )

    @property
    def capabilities(self) -> StoreCapabilities:
        """The capabilities of the selected store backend."""
        return backend_of(self).capabilities

    def validate(self) -> Iterator[str]:
        names = [backend.name for backend in BACKENDS]
        if self.storage_backend not in ("", *names):
            yield f"--storage-backend invalid, allowed values: {', '.join(names)}"
        elif self.storage_backend not in ("", backend_of(self).name):
            yield f"--storage-backend={self.storage_backend} contradicts --etcd-servers: with etcd3 it must be given"
        if self.unsafe_no_fsync and not self.capabilities.local:
            yield "--unsafe-no-fsync is for the store in --data-dir: etcd has a flag of its own for it"
        if not self.servers and (self.cafile or self.certfile or self.keyfile):
            yield "--etcd-cafile, --etcd-certfile and --etcd-keyfile need --etcd-servers"
        if bool(self.certfile) != bool(self.keyfile):
            yield "--etcd-certfile and --etcd-keyfile must be specified together"
        for server in self.servers:
            if urlsplit(server).scheme not in ("http", "https") or not urlsplit(server).hostname:
                yield f'--etcd-servers: "{server}" is no URL of the form scheme://ip:port'
        files = {"etcd-cafile": self.cafile, "etcd-certfile": self.certfile, "etcd-keyfile": self.keyfile}
        yield from missing_files(files | {"encryption-provider-config": self.encryption_provider_config})
        if self.encryption_reload and not self.encryption_provider_config:
            yield "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
        if self.storage_media_type != "application/json":
            yield f'--storage-media-type "{self.storage_media_type}" invalid, allowed values: application/json'
        if self.compaction_interval < 0 or self.healthcheck_timeout <= 0:
            yield "--etcd-compaction-interval can not be negative and --etcd-healthcheck-timeout must be positive"
        if not self.watch_cache:
            yield "--watch-cache=false is not supported by this version"
