"""How service account tokens are issued and believed, as the options say it.

Without a --service-account-signing-key-file tokens are signed with the key in --data-dir. Believed are those of all
keys whose public halves are beside it: while a key is replaced, there are two.
"""

from __future__ import annotations

from pathlib import Path

from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.kube.serviceaccount.config import DEFAULT_ISSUER, ServiceAccountConfig
from pilothouse.kube.serviceaccount.keys import SigningKey, read_verifying_keys


def service_account_config(options: CompletedOptions) -> ServiceAccountConfig:
    """Raises ValueError, OSError for a key file that was given and makes no sense; our own is read when needed."""
    given, authentication = options.misc.service_account_signing_key_file, options.authentication
    own = CertificatePaths.under(Path(options.pilothouse.data_dir))
    believed = [Path(file) for file in authentication.service_account_key_file]
    _check(Path(given) if given else None, believed)
    return ServiceAccountConfig(
        signing_key_file=Path(given) if given else own.service_account_key,
        key_files=tuple(believed) if given else (*believed, own.service_account_public_key),
        issuers=authentication.service_account_issuer or (DEFAULT_ISSUER,),
        api_audiences=authentication.api_audiences,
        jwks_uri=authentication.service_account_jwks_uri,
        max_expiration=int(authentication.service_account_max_token_expiration),
        extend_expiration=authentication.service_account_extend_token_expiration,
    )


def _check(signing: Path | None, believed: list[Path]) -> None:
    if signing:
        _ = SigningKey(signing).private
    for file in believed:
        read_verifying_keys(file)
