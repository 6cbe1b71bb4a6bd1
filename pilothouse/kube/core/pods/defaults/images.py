"""The tag of an image reference, as far as defaults depend on it: an image without tag and digest means `latest`."""

from __future__ import annotations

import re

from pilothouse.machinery.bounded_cache import bounded_cache

_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
_MAX_NAME_LENGTH = 255

_LABEL = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<name>{_DOMAIN}/{_PATH}(?:/{_PATH})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?:@(?P<algorithm>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*):(?P<hex>[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_LOWER_HEX = re.compile("[a-f0-9]+")


@bounded_cache(entries=4096, key_bytes=256)
def image_tag(image: str) -> str:
    """Empty for a reference by digest alone, and for what is no reference at all."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    match = _REFERENCE.fullmatch(_with_domain(image))
    if (
        match is None
        or not (len(match["name"]) <= _MAX_NAME_LENGTH)
        or not _is_valid_digest(match["algorithm"], match["hex"])
    ):
        return ""
    return match["tag"] or ("" if match["hex"] else "latest")


def _with_domain(image: str) -> str:
    """The reference with its registry, which is Docker Hub where none is named."""
    domain, slash, _ = image.partition("/")
    named = "." in domain or ":" in domain or domain == "localhost" or domain.lower() != domain
    return image if slash and named else f"docker.io/{image}"


def _is_valid_digest(algorithm: str | None, digits: str | None) -> bool:
    if algorithm is None or digits is None:
        return True
    return len(digits) == _DIGEST_LENGTHS.get(algorithm) and _LOWER_HEX.fullmatch(digits) is not None
