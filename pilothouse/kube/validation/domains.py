"""Validation of names with a domain."""

from __future__ import annotations

from collections.abc import Mapping

from pilothouse.kube.validation.fields import dns_subdomain
from pilothouse.machinery.field import Errors, Path, invalid, required, too_long
from pilothouse.machinery.validation.names import is_dns1123_label, is_dns1123_subdomain, is_qualified_name
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
        yield from _domain_prefixed_key(key.lower(), path)
    if annotations_size(annotations) > TOTAL_ANNOTATION_SIZE_LIMIT:
        yield too_long(path, TOTAL_ANNOTATION_SIZE_LIMIT)


def _domain_prefixed_key(key: str, path: Path) -> Errors:
    if not key:
        yield required(path)
    elif problems := is_qualified_name(key):
        for problem in problems:
            yield invalid(path, key, problem)
    elif key.count("/") != 1:
        yield invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')


def fully_qualified_domain_name(value: str, path: Path) -> Errors:
    """At least two labels; a final dot is allowed."""
    if not value:
        yield required(path)
        return
    name = value.removesuffix(".")
    if errors := is_dns1123_subdomain(name):
        yield invalid(path, name, ",".join(errors))
    elif "." not in name:
        yield invalid(path, name, ONE_SEGMENT)
    else:
        labels = ((label, is_dns1123_label(label)) for label in name.split("."))
        for label, complaints in labels:
            if complaints:
                yield invalid(path, label, ",".join(complaints))
                return
