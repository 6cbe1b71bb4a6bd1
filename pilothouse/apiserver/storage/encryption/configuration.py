"""EncryptionConfiguration: the transformers of each resource."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

from pilothouse.apiserver.storage.encryption.kms_provider import KmsProvider
from pilothouse.apiserver.storage.encryption.local import AesCbc, AesGcm, Identity, Secretbox
from pilothouse.apiserver.storage.encryption.transformer import Prefixed, PrefixTransformers, Transformer
from pilothouse.apiserver.storage.encryption.validation import (
    KMS_V1,
    PROVIDERS,
    kms_version,
    parse_group_resource,
    validate_configuration,
)
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import aggregate

_NO_KMS_V1 = (
    "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  "
    "Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."
)
_CIPHERS: dict[str, Callable[[bytes], Transformer]] = {"aesgcm": AesGcm, "aescbc": AesCbc, "secretbox": Secretbox}


@dataclass(frozen=True, slots=True)
class Encryption:
    """The transformers of a file. `providers`: KMS providers with health checks."""

    transformers: dict[GroupResource, PrefixTransformers]
    providers: tuple[KmsProvider, ...]

    def of(self, resource: GroupResource) -> Transformer | None:
        """Return the transformer of the resource, its group, or `*.*`; None if not configured."""
        wildcards = (GroupResource(resource.group, "*"), GroupResource("*", "*"))
        for candidate in (resource, *wildcards):
            if (found := self.transformers.get(candidate)) is not None:
                return found.counted_for(str(resource))
        return None


def read_configuration(path: Path) -> Json:
    """Read and validate a file. Raises OSError, and ValueError with all problems."""
    data = path.read_bytes()
    if not data:
        raise ValueError(f"encryption provider configuration file {quote(str(path))} is empty")
    config = parse_yaml(data).value
    if not isinstance(config, dict) or (config.get("apiVersion"), config.get("kind")) != (
        "apiserver.config.k8s.io/v1",
        "EncryptionConfiguration",
    ):
        raise ValueError(f"{path} is no EncryptionConfiguration of apiserver.config.k8s.io/v1")
    if problems := [str(error) for error in validate_configuration(config)]:
        raise ValueError(f"error while parsing file: {aggregate(problems)}")
    return config


def build_encryption(config: Json) -> Encryption:
    """Build the transformers. Raises ValueError for duplicate resources and for KMS v1."""
    by_resource: dict[GroupResource, list[Prefixed]] = {}
    providers: list[KmsProvider] = []
    for part in config["resources"]:
        chain = [each for provider in part["providers"] for each in _prefixed(provider, providers)]
        for name in part["resources"]:
            resource = parse_group_resource(name)
            for earlier in (GroupResource(resource.group, "*"), GroupResource("*", "*")):
                if earlier in by_resource:
                    masked, by = (quote(f"{each.resource}.{each.group}") for each in (resource, earlier))
                    raise ValueError(f"resource {masked} is masked by earlier rule {by}")
            by_resource.setdefault(resource, []).extend(chain)
    transformers = {resource: PrefixTransformers(chain) for resource, chain in by_resource.items()}
    return Encryption(transformers, tuple(providers))


def _prefixed(provider: Json, providers: list[KmsProvider]) -> list[Prefixed]:
    (name,) = (each for each in PROVIDERS if provider.get(each) is not None)
    if name == "identity":
        return [Prefixed(b"", Identity())]
    if name == "kms":
        if kms_version(provider[name]) == KMS_V1:
            raise ValueError(f"error while building transformers: {_NO_KMS_V1}")
        kms = KmsProvider.of(provider[name])
        providers.append(kms)
        return [Prefixed(f"k8s:enc:kms:v2:{kms.name}:".encode(), kms.transformer)]
    keys = [
        Prefixed(f"{key['name']}:".encode(), _CIPHERS[name](base64.b64decode(key["secret"])))
        for key in provider[name]["keys"]
    ]
    no_match = f"no matching key was found for the provided {'Secretbox' if name == 'secretbox' else 'AES'} transformer"
    return [Prefixed(f"k8s:enc:{name}:v1:".encode(), PrefixTransformers(keys, no_match=no_match))]
