"""The names of signers: a domain, a slash and a path."""

from __future__ import annotations

from pilothouse.kube.validation.domains import ONE_SEGMENT
from pilothouse.kube.validation.fields import Rule
from pilothouse.machinery.field import Errors, Path, invalid, required, too_long
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.validation.names import is_dns1123_label, is_dns1123_subdomain
from pilothouse.machinery.validation.object_names import name_is_dns_subdomain

_MAX_DOMAIN = 253
_MAX_NAME = _MAX_DOMAIN + 253 + 63 + 1 + 1


def is_kubernetes_signer_name(name: str) -> bool:
    """Report whether the signer belongs to the Kubernetes project."""
    domain = name.partition("/")[0]
    return domain == "kubernetes.io" or domain.endswith(".kubernetes.io")


def validate_signer_name(name: str, path: Path) -> Errors:
    if not name:
        yield required(path)
        return
    if name.count("/") != 1:
        reason = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield invalid(path, name, reason)
        return
    domain, _, rest = name.partition("/")
    if len(domain.encode()) > _MAX_DOMAIN:
        yield too_long(path, _MAX_DOMAIN)
    yield from _validate_parts(domain, is_dns1123_label, path)
    if "." not in domain:
        yield invalid(path, domain, ONE_SEGMENT)
    yield from _validate_parts(rest, is_dns1123_subdomain, path)
    if len(name.encode()) > _MAX_NAME:
        yield too_long(path, _MAX_NAME)


def _validate_parts(text: str, rule: Rule, path: Path) -> Errors:
    """Report the first invalid part only; further errors would be equal."""
    for part in text.split("."):
        if messages := rule(part):
            for message in messages:
                yield invalid(path, text, f"validating label {quote(part)}: {message}")
            return


def cluster_trust_bundle_name_problems(signer: str, name: str, prefix: bool) -> list[str]:
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return name_is_dns_subdomain(name, prefix)
    required = signer.replace("/", ":") + ":"
    if not name.startswith(required):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {required}"]
    return name_is_dns_subdomain(name.removeprefix(required), prefix)
