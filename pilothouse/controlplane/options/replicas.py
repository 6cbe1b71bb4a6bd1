"""Options of replicated servers: shared keys, certificate names, and coordinated leader election."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import missing_files
from pilothouse.controlplane.options.pilothouse import TaskGroup
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import DURATION, STRING, STRINGS, flag

JOIN_VARIABLE = "PILOTHOUSE_JOIN"


@dataclass(frozen=True)
class ReplicaOptions:
    title: ClassVar[str] = "replicas"

    pki_dir: str = flag(
        "pki-dir",
        STRING,
        "",
        "Directory of the CAs and keys that all servers of a cluster share.",
        group=TaskGroup.REPLICAS,
    )
    join: str = flag(
        "join",
        STRING,
        "",
        f"Token from 'pilothouse join-token'. Safer: --join-file or ${JOIN_VARIABLE}.",
        secret=True,
        group=TaskGroup.REPLICAS,
    )
    join_file: str = flag("join-file", STRING, "", "File with the token of --join.", group=TaskGroup.REPLICAS)
    cert_extra_sans: tuple[str, ...] = flag(
        "apiserver-cert-extra-sans",
        STRINGS,
        (),
        "Additional names and addresses in the generated serving certificate.",
        group=TaskGroup.REPLICAS,
    )

    @property
    def join_token(self) -> str:
        """Join token of the flags or the environment; empty without one. Raises OSError."""
        if self.join_file:
            with open(self.join_file, encoding="utf-8") as file:
                return file.read().strip()
        return self.join or os.environ.get(JOIN_VARIABLE, "").strip()

    def validate(self) -> Iterator[str]:
        if self.join and self.join_file:
            yield "--join and --join-file can not be specified together"
        if self.pki_dir and (self.join or self.join_file):
            yield "--pki-dir has the shared keys: --join and --join-file can not be specified with it"
        if os.path.exists(self.pki_dir) and not os.path.isdir(self.pki_dir):
            yield f"--pki-dir: {self.pki_dir} is not a directory"
        yield from missing_files({"join-file": self.join_file})


@dataclass(frozen=True)
class CoordinatedLeadershipOptions:
    title: ClassVar[str] = "coordinated leadership"

    lease_duration: float = flag(
        "coordinated-leadership-lease-duration",
        DURATION,
        15.0,
        "How long the lease of the server that elects leaders lasts, with the gate CoordinatedLeaderElection.",
    )
    renew_deadline: float = flag(
        "coordinated-leadership-renew-deadline", DURATION, 10.0, "How long that server tries to renew its lease."
    )
    retry_period: float = flag(
        "coordinated-leadership-retry-period", DURATION, 2.0, "How long servers wait between attempts at that lease."
    )

    def validate(self) -> Iterator[str]:
        duration, deadline, period = (
            f"--coordinated-leadership-{name}" for name in ("lease-duration", "renew-deadline", "retry-period")
        )
        if self.lease_duration <= self.renew_deadline:
            yield f"{duration} must be greater than {deadline}"
        if self.renew_deadline <= self.retry_period:
            yield f"{deadline} must be greater than {period}"
