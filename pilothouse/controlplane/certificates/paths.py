"""Paths of the generated certificates and keys."""

from __future__ import annotations

from pathlib import Path

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CertificatePaths:
    directory: Path
    ca_cert: Path
    ca_key: Path
    serving_cert: Path
    serving_key: Path
    front_proxy_ca_cert: Path
    front_proxy_ca_key: Path
    front_proxy_client_cert: Path
    front_proxy_client_key: Path
    admin_cert: Path
    admin_key: Path
    service_account_key: Path
    service_account_public_key: Path

    @classmethod
    def under(cls, data_dir: Path) -> CertificatePaths:
        pki = data_dir / "pki"
        return cls(
            directory=pki,
            ca_cert=pki / "ca.crt",
            ca_key=pki / "ca.key",
            serving_cert=pki / "apiserver.crt",
            serving_key=pki / "apiserver.key",
            front_proxy_ca_cert=pki / "front-proxy-ca.crt",
            front_proxy_ca_key=pki / "front-proxy-ca.key",
            front_proxy_client_cert=pki / "front-proxy-client.crt",
            front_proxy_client_key=pki / "front-proxy-client.key",
            admin_cert=pki / "admin.crt",
            admin_key=pki / "admin.key",
            service_account_key=pki / "sa.key",
            service_account_public_key=pki / "sa.pub",
        )

    @property
    def cross_cert(self) -> Path:
        """Certificate of the new CA signed by the old CA, during a rotation."""
        return self.directory / "ca-cross.crt"

    @property
    def retired(self) -> Path:
        """Certificates of CAs that are no longer trusted."""
        return self.directory / "retired.crt"

    @property
    def files(self) -> list[Path]:
        return [getattr(self, name) for name in self.__slots__ if name != "directory"]


class CertificateError(Exception):
    """Existing files are inconsistent. Replacing the files would break their users."""
