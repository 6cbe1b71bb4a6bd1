"""Names of compute resources, and rules for their amounts."""

from __future__ import annotations

from pilothouse.kube.validation.fields import nonnegative_quantity, qualified_name
from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.machinery.field import Errors, Path, invalid
from pilothouse.machinery.quantity import QuantityError, parse_quantity
from pilothouse.machinery.validation.names import is_qualified_name

HUGE_PAGES_PREFIX = "hugepages-"
REQUESTS_PREFIX = "requests."

_NATIVE_DOMAIN = "kubernetes.io/"
_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED_RESOURCES = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_STANDARD_RESOURCES = (
    _COUNTED_RESOURCES
    | _CONTAINER_RESOURCES
    | {f"requests.{name}" for name in _CONTAINER_RESOURCES}
    | {f"limits.{name}" for name in _CONTAINER_RESOURCES}
    | {"storage", "requests.storage"}
)


def is_huge_page(name: str) -> bool:
    return name.startswith(HUGE_PAGES_PREFIX)


def is_pod_level(name: str) -> bool:
    """Report whether pods can have the resource for all containers together."""
    return name in ("cpu", "memory") or is_huge_page(name)


def is_quota_huge_page(name: str) -> bool:
    return name.startswith((HUGE_PAGES_PREFIX, REQUESTS_PREFIX + HUGE_PAGES_PREFIX))


def is_native(name: str) -> bool:
    """Report whether the name has no domain or the Kubernetes domain."""
    return "/" not in name or _NATIVE_DOMAIN in name


def is_overcommit_allowed(name: str) -> bool:
    """Whether the limit may be above the request."""
    return is_native(name) and not is_huge_page(name)


def is_standard(name: str) -> bool:
    return name in _STANDARD_RESOURCES or is_quota_huge_page(name)


def is_standard_for_containers(name: str) -> bool:
    return name in _CONTAINER_RESOURCES or is_huge_page(name)


@bounded_cache(entries=1024, key_bytes=256)
def is_extended(name: str) -> bool:
    """Report whether the name is an extended resource: a foreign domain, and valid in a quota."""
    if is_native(name) or name.startswith(REQUESTS_PREFIX):
        return False
    return not is_qualified_name(REQUESTS_PREFIX + name)


def is_integer(name: str) -> bool:
    """Whether fractions of the resource make no sense."""
    return name in _COUNTED_RESOURCES or is_extended(name)


def huge_page_size(name: str) -> int | None:
    """Return the page size in the name of a huge page resource, or None for an invalid size."""
    try:
        size = parse_quantity(name.removeprefix(HUGE_PAGES_PREFIX))
    except QuantityError:
        return None
    return size.value() if size.sign > 0 and size.milli_value() % 1000 == 0 else None


def validate_resource_name(name: str, path: Path) -> Errors:
    errors = list(qualified_name(name, path))
    yield from errors
    if not errors and "/" not in name and not is_standard(name):
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def validate_resource_amount(name: str, text: str, path: Path) -> Errors:
    """Require a non-negative amount, and an integer for indivisible resources."""
    amount = parse_quantity(text)
    yield from nonnegative_quantity(amount, path)
    if is_integer(name) and amount.overflowing_milli_value() % 1000:
        yield invalid(path, str(amount), "must be an integer")
