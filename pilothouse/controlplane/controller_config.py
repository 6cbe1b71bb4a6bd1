"""What the controllers inside this server are told, as the options say it."""

from __future__ import annotations

from pathlib import Path

from pilothouse.controllers.context import ControllerConfig
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.options.completion import CompletedOptions

_SHARED_STORE_GRACE, _OWN_STORE_GRACE = 5.0, 0.5
"""Before a namespace is emptied: other servers learn of its end with a delay; here only requests in flight do not."""


def controller_config(options: CompletedOptions) -> ControllerConfig:
    """Reads files. Raises OSError."""
    given = options.controllers
    return ControllerConfig(
        concurrent_namespace_syncs=given.concurrent_namespace_syncs,
        namespace_deletion_grace_period=_SHARED_STORE_GRACE if options.etcd.servers else _OWN_STORE_GRACE,
        concurrent_gc_syncs=given.concurrent_gc_syncs,
        concurrent_serviceaccount_token_syncs=given.concurrent_serviceaccount_token_syncs,
        root_ca=_root_ca(options),
    )


def _root_ca(options: CompletedOptions) -> bytes:
    """A serving certificate that was given vouches for itself."""
    own = CertificatePaths.under(Path(options.pilothouse.data_dir)).ca_cert
    return Path(options.controllers.root_ca_file or options.secure_serving.tls_cert_file or own).read_bytes()
