"""The settings of service account tokens that flags give."""

from __future__ import annotations

from pathlib import Path

from pilothouse.machinery.dataclass import dataclass

DEFAULT_ISSUER = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True)
class ServiceAccountConfig:
    """With no files, no tokens are issued and none are believed."""

    signing_key_file: Path | None = None
    key_files: tuple[Path, ...] = ()
    """Those whose tokens are believed; with none, the public half of the signing key."""
    issuers: tuple[str, ...] = (DEFAULT_ISSUER,)
    """The first issues; tokens of all are believed."""
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
