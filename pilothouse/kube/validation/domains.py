"""Validation of names with a domain."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.kube.validation.fields import Rule, dns_subdomain
from pilothouse.machinery.field import Errors, Path, invalid, required, too_long
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.validation import names
from pilothouse.machinery.validation.object_meta import TOTAL_ANNOTATION_SIZE_LIMIT, annotations_size
from pilothouse.machinery.validation.pattern_format import PatternFormat, regex_error

ONE_SEGMENT = "should be a domain with at least two segments separated by dots"

_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_http_path = PatternFormat(_HTTP_PATH, "Invalid path")


def domain_prefixed_path(value: str, path: Path) -> Errors:
    """A DNS subdomain, a slash and an HTTP path: acme.io/foo."""
    if not value:
        yield required(path)
        return
    host, _, rest = value.partition("/")
    if not host or not rest:
        yield invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    yield from dns_subdomain(host, path)
    if not _http_path.matches(rest):
        yield invalid(path, rest, regex_error("Invalid path", _HTTP_PATH))


def user_annotations(annotations: Mapping[str, str], path: Path) -> Errors:
    """Validate annotations for a signer: each key needs a domain."""
    for key in annotations:
        name = key.lower()
        if not name:
            yield required(path)
        elif problems := names.is_qualified_name(name):
            for problem in problems:
                yield invalid(path, name, problem)
        elif name.count("/") != 1:
            yield invalid(path, name, 'must be a domain-prefixed key (such as "acme.io/foo")')
    if annotations_size(annotations) > TOTAL_ANNOTATION_SIZE_LIMIT:
        yield too_long(path, TOTAL_ANNOTATION_SIZE_LIMIT)


def fully_qualified_domain_name(value: str, path: Path) -> Errors:
    """At least two labels; a final dot is allowed."""
    if not value:
        yield required(path)
        return
    name = value.removesuffix(".")
    if errors := names.is_dns1123_subdomain(name):
        yield invalid(path, name, ",".join(errors))
    elif "." not in name:
        yield invalid(path, name, ONE_SEGMENT)
    else:
        labels = ((label, names.is_dns1123_label(label)) for label in name.split("."))
        for label, complaints in labels:
            if complaints:
                yield invalid(path, label, ",".join(complaints))
                return


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
    yield from _validate_parts(domain, names.is_dns1123_label, path)
    if "." not in domain:
        yield invalid(path, domain, ONE_SEGMENT)
    yield from _validate_parts(rest, names.is_dns1123_subdomain, path)
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
        return names.name_is_dns_subdomain(name, prefix)
    required = signer.replace("/", ":") + ":"
    if not name.startswith(required):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {required}"]
    return names.name_is_dns_subdomain(name.removeprefix(required), prefix)
