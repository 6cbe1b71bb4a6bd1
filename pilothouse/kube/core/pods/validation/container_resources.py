"""Requests, limits and claims of containers and pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import TypeAlias

from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.validation.fields import dns_label
from pilothouse.kube.validation.resource_names import (
    HUGE_PAGES_PREFIX,
    huge_page_size,
    is_extended,
    is_huge_page,
    is_native,
    is_overcommit_allowed,
    is_pod_level,
    is_standard_for_containers,
    validate_resource_amount,
    validate_resource_name,
)
from pilothouse.machinery.field import (
    Errors,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from pilothouse.machinery.objects import Json
from pilothouse.machinery.quantity import parse_quantity

_COMPUTE = frozenset({"cpu", "memory"})

_NameRule: TypeAlias = Callable[[str, Path], Errors]
_MOST_NAMES = 16
"""Maximum names in a message. Bounds the response: both messages and names can be numerous."""


def validate_container_resources(
    resources: Json, path: Path, claim_names: Set[str], options: PodValidationOptions
) -> Errors:
    yield from _validate_requirements(resources, validate_container_resource_name, path, options)
    yield from _validate_claims(resources.get("claims") or (), claim_names, path.child("claims"))


def validate_pod_resources(resources: Json, path: Path, claim_names: Set[str], options: PodValidationOptions) -> Errors:
    yield from _validate_requirements(resources, _validate_pod_resource_name, path, options)
    yield from _validate_claims(resources.get("claims") or (), claim_names, path.child("claims"))


def validate_overhead(overhead: Json, path: Path, options: PodValidationOptions) -> Errors:
    return validate_container_resources({"limits": overhead}, path, frozenset(), options)


def _validate_requirements(resources: Json, check_name: _NameRule, path: Path, options: PodValidationOptions) -> Errors:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name in sorted(limits):
        yield from _validate_amount(name, limits[name], path, kind="limits", check_name=check_name, options=options)
    for name in sorted(requests):
        text = requests[name]
        yield from _validate_amount(name, text, path, kind="requests", check_name=check_name, options=options)
        if name in limits:
            amount, limit = parse_quantity(text), parse_quantity(limits[name])
            if amount != limit and not is_overcommit_allowed(name):
                yield invalid(path.child("requests"), str(amount), f"must be equal to {name} limit of {limit}")
            elif amount > limit:
                reason = f"must be less than or equal to {name} limit of {limit}"
                yield invalid(path.child("requests"), str(amount), reason)
        elif not is_overcommit_allowed(name):
            yield required(path.child("limits"), "Limit must be set for non overcommitable resources")
        if is_huge_page(name):
            yield from _validate_huge_pages(name, text, path.child("requests").key(name), options)
    names = limits.keys() | requests.keys()
    if any(map(is_huge_page, names)) and names.isdisjoint(_COMPUTE):
        yield forbidden(path, "HugePages require cpu or memory")


def _validate_amount(
    name: str, text: str, path: Path, *, kind: str, check_name: _NameRule, options: PodValidationOptions
) -> Errors:
    if name in _COMPUTE and parse_quantity(text).sign >= 0:
        return
    at = path.child(kind).key(name)
    yield from check_name(name, at)
    yield from validate_resource_amount(name, text, at)
    if kind == "limits":
        yield from _validate_huge_pages(name, text, at, options)


def _validate_huge_pages(name: str, text: str, path: Path, options: PodValidationOptions) -> Errors:
    if is_huge_page(name) and not options.allow_indivisible_huge_pages and not is_divisible(name, text):
        yield invalid(path, text, f"{text} is not positive integer multiple of {name}")


def is_divisible(name: str, text: str) -> bool:
    """Report whether an amount of huge pages is a multiple of the page size."""
    size = huge_page_size(name)
    return size is not None and parse_quantity(text).value() % size == 0


def validate_container_resource_name(name: str, path: Path) -> Errors:
    yield from validate_resource_name(name, path)
    if "/" not in name:
        if not is_standard_for_containers(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _validate_pod_resource_name(name: str, path: Path) -> Errors:
    errors = list(validate_resource_name(name, path))
    yield from errors
    if not errors and not is_pod_level(name):
        yield not_supported(path, name, ("cpu", HUGE_PAGES_PREFIX, "memory"))


def _validate_claims(claims: Sequence[Json], pod_claims: Set[str], path: Path) -> Errors:
    seen: dict[str, set[str]] = {}
    names = f": {', '.join(sorted(pod_claims)[:_MOST_NAMES])}" if pod_claims else " which is empty"
    reason = f"must be one of the names in pod.spec.resourceClaims{names}"
    for position, claim in enumerate(claims):
        at, name = path.index(position), claim.get("name") or ""
        if not name:
            yield required(at)
            continue
        yield from _validate_unique(claim, name, at, seen)
        if name not in pod_claims:
            yield replace(not_found(at, name), detail=reason)


def _validate_unique(claim: Json, name: str, path: Path, seen: dict[str, set[str]]) -> Errors:
    """Reject duplicates: a claim is used once as a whole, or once per request.

    `seen`: claim -> used requests. The empty request means the whole claim.
    """
    requests = seen.setdefault(name, set())
    if "" in requests:
        yield duplicate(path, name)
        return
    request = claim.get("request") or ""
    if request:
        yield from dns_label(request, path.child("request"))
    if request in requests:
        yield duplicate(path, f"{name}/{request}")
    elif not request:
        for _ in requests:
            yield duplicate(path, name)
    requests.add(request)
