"""A webhook that is asked whose tokens the others do not know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pilothouse.controlplane.options.files import missing_files
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags.declare import DURATION, STRING, flag
from pilothouse.machinery.gofmt import quote


@dataclass(frozen=True)
class TokenWebhookOptions:
    title: ClassVar[str] = "authentication webhook"

    config_file: str = flag(
        "authentication-token-webhook-config-file", STRING, "", "A kubeconfig for the webhook that reviews tokens."
    )
    version: str = flag(
        "authentication-token-webhook-version",
        STRING,
        "v1beta1",
        "The version of TokenReview that the webhook is sent: v1 or v1beta1.",
    )
    cache_ttl: float = flag(
        "authentication-token-webhook-cache-ttl", DURATION, 120.0, "How long its answers are remembered."
    )

    def validate(self) -> Iterator[str]:
        yield from missing_files({"authentication-token-webhook-config-file": self.config_file})
        if self.version not in ("v1", "v1beta1"):
            version = f"unsupported authentication webhook version {quote(self.version)}"
            yield f'{version}, supported versions are "v1", "v1beta1"'
