"""Validation of image names, without a registry."""

from __future__ import annotations

import re

from pilothouse.machinery.gofmt import quote

_LONGEST_NAME, _LONGEST = 255, 600
_HOST_PART = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST = r"sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}"
_REFERENCE = re.compile(
    rf"(?P<domain>{_DOMAIN})/(?P<path>{_PART}(?:/{_PART})*)(?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{{0,127}})?(?:@(?:{_DIGEST}))?"
)
_ID = re.compile(r"[a-f0-9]{64}")


def problem_with(image: str) -> str:
    """Return the problem with the image name in a kubelet's words; empty if valid."""
    problem = _problem(image)
    if not problem:
        return ""
    return f"Failed to apply default image tag {quote(image)}: couldn't parse image name {quote(image)}: {problem}"


def _problem(image: str) -> str:
    if len(image) > _LONGEST:
        return "invalid reference format"
    if _ID.fullmatch(image):
        return f"invalid repository name ({image}), cannot specify 64-byte hexadecimal strings"
    domain, rest = _split(image)
    name = rest.partition(":")[0]
    if name != name.lower():
        return f"invalid reference format: repository name ({name}) must be lowercase"
    found = _REFERENCE.fullmatch(f"{domain}/{rest}")
    if found is None:
        return "invalid reference format"
    too_long = len(found["path"]) > _LONGEST_NAME
    return f"repository name must not be more than {_LONGEST_NAME} characters" if too_long else ""


def _split(image: str) -> tuple[str, str]:
    """Return (registry, rest); the default registry is docker.io."""
    domain, slash, rest = image.partition("/")
    if not slash:
        return "docker.io", f"library/{image}"
    is_domain = domain == "localhost" or any(each in domain for each in ".:") or domain != domain.lower()
    return (domain, rest) if is_domain else ("docker.io", image)
