"""Flag settings of service account tokens."""

from __future__ import annotations

from pathlib import Path

from pilothouse.machinery.dataclass import dataclass

DEFAULT_ISSUER = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True)
class ServiceAccountConfig:
    """Without files, tokens are neither issued nor trusted."""

    signing_key_file: Path | None = None
    key_files: tuple[Path, ...] = ()
    """Files of verifying keys; by default, the public part of the signing key."""
    issuers: tuple[str, ...] = (DEFAULT_ISSUER,)
    """Trusted issuers; the first issues tokens."""
    api_audiences: tuple[str, ...] = ()
    jwks_uri: str = ""
    max_expiration: int = 0
    """Seconds; 0 for no limit but the API's own."""
    extend_expiration: bool = True

    @property
    def audiences(self) -> tuple[str, ...]:
        return self.api_audiences or self.issuers

    @property
    def verifying_files(self) -> tuple[Path, ...]:
        return self.key_files or ((self.signing_key_file,) if self.signing_key_file else ())
