"""Validation of EncryptionConfigurations. Messages never contain secrets."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from urllib.parse import urlsplit

from pilothouse.machinery.durations import DurationError, parse_duration
from pilothouse.machinery.field import Errors, Path, invalid, required, root
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json

PROVIDERS = ("kms", "aesgcm", "aescbc", "secretbox", "identity")
_KEY_SIZES = {"aesgcm": (16, 24, 32), "aescbc": (16, 24, 32), "secretbox": (32,)}
KMS_V1, KMS_V2 = "v1", "v2"
_ALLOCATIONS = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")


def validate_configuration(config: Json) -> Errors:
    path = root("resources")
    if not config.get("resources"):
        yield required(path, f"at least one {path} is required")
    names: set[str] = set()
    for index, part in enumerate(config.get("resources") or ()):
        resources, providers = path.index(index).child("resources"), path.index(index).child("providers")
        if not part.get("resources"):
            yield required(resources, f"at least one {resources} is required")
        yield from _validate_overlap(part.get("resources") or [], resources)
        for position, name in enumerate(part.get("resources") or ()):
            if reason := _resource_problem(name):
                yield invalid(resources.index(position), name, reason)
        if not part.get("providers"):
            yield required(providers, f"at least one {providers} is required")
        for position, provider in enumerate(part.get("providers") or ()):
            yield from _validate_provider(provider, providers.index(position), names)


def parse_group_resource(text: str) -> GroupResource:
    """Parse `secrets`, `deployments.apps`, `*.apps`, `*.*`; `*.` denotes the core group."""
    resource, _, group = text.partition(".")
    return GroupResource(group, resource)


def _validate_overlap(resources: list[str], path: Path) -> Errors:
    parsed = [parse_group_resource(resource) for resource in resources]
    if len(set(parsed)) < len(parsed):
        yield invalid(path, resources, "the same resource cannot be specified multiple times")
    pairs = [(one, other) for i, one in enumerate(parsed) for j, other in enumerate(parsed) if i != j and one != other]
    if any(_overlap(one, other) for one, other in pairs):
        reason = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed"
        yield invalid(path, resources, f"{reason} as they will be masked")


def _overlap(one: GroupResource, other: GroupResource) -> bool:
    if (one.group, one.resource) == ("*", "*"):
        return True
    return one.group == other.group and "*" in (one.resource, other.resource)


def _resource_problem(name: str) -> str:
    parsed = parse_group_resource(name)
    if name.lower() != name:
        return "resource name should not contain capital letters"
    if name == "*":
        return "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"
    if name in _ALLOCATIONS:
        return "resources which do not have REST API/s cannot be encrypted"
    if parsed.group == "events.k8s.io":
        stored = "'*.events.k8s.io' objects are stored using the 'events' API group in etcd."
        return f"{stored} Use 'events' instead in the config file"
    if parsed.group == "extensions":
        return "'extensions' group has been removed and cannot be used for encryption"
    if parsed.group == "*" and parsed.resource != "*":
        return "encrypting the same resource across groups is not supported"
    return ""


def _validate_provider(provider: Json, path: Path, names: set[str]) -> Errors:
    configured = [name for name in PROVIDERS if provider.get(name) is not None]
    if len(configured) > 1:
        reason = "more than one provider specified in a single element, should split into different list elements"
        yield invalid(path, sorted(configured), reason)
        return
    if not configured:
        expected = "KMS, AESGCM, AESCBC, Secretbox, Identity"
        yield invalid(path, {}, f"provider does not contain any of the expected providers: {expected}")
        return
    (name,) = configured
    if name == "kms":
        yield from _validate_kms(provider[name], path.child(name), names)
        names.add(provider[name].get("name") or "")
    elif name in _KEY_SIZES:
        yield from _validate_keys(provider[name].get("keys") or [], path.child(name, "keys"), _KEY_SIZES[name])


def _validate_keys(keys: list[Json], path: Path, sizes: Sequence[int]) -> Errors:
    if not keys:
        yield required(path, "at least one keys is required")
    for index, key in enumerate(keys):
        at = path.index(index)
        if not key.get("name"):
            yield required(at.child("name"), "name is a mandatory field for a key")
        if not key.get("secret"):
            yield required(at.child("secret"), "secret is a mandatory field for a key")
        elif reason := _secret_problem(key["secret"], sizes):
            yield invalid(at.child("secret"), "REDACTED", reason)


def _secret_problem(secret: str, sizes: Sequence[int]) -> str:
    try:
        length = len(base64.b64decode(secret, validate=True))
    except binascii.Error:
        return "secrets must be base64 encoded"
    listed = " ".join(map(str, sizes))
    return "" if length in sizes else f"secret is not of the expected length, got {length}, expected one of [{listed}]"


def _validate_kms(kms: Json, path: Path, names: set[str]) -> Errors:
    name, version = kms.get("name") or "", kms_version(kms)
    if not name:
        yield required(path.child("name"), "name is a mandatory field for a provider")
    if version != KMS_V1 and ":" in name:
        yield invalid(path.child("name"), name, f"invalid KMS provider name {name}, must not contain ':'")
    if version != KMS_V1 and name in names:
        yield invalid(path.child("name"), name, f"duplicate KMS provider name {name}, names must be unique")
    timeout = kms.get("timeout")
    try:
        positive = timeout is None or parse_duration(timeout) > 0
    except DurationError:
        positive = False
    if not positive:
        yield invalid(path.child("timeout"), timeout, "timeout should be a positive value")
    endpoint = kms.get("endpoint") or ""
    scheme = urlsplit(endpoint).scheme
    if not endpoint:
        yield invalid(path.child("endpoint"), "", "endpoint is a mandatory field for a kms")
    elif scheme != "unix":
        reason = f"unsupported scheme {quote(scheme)} for KMS provider, only unix is supported"
        yield invalid(path.child("endpoint"), endpoint, reason)
    if version != KMS_V1 and kms.get("cachesize") is not None:
        yield invalid(path.child("cachesize"), kms["cachesize"], "cachesize is not supported in v2")
    if version == KMS_V1 and kms.get("cachesize") == 0:
        yield invalid(path.child("cachesize"), 0, "cachesize should be a positive value, or negative to disable")
    if version not in (KMS_V1, KMS_V2):
        reason = "unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported"
        yield invalid(path.child("apiVersion"), version, reason)


def kms_version(kms: Json) -> str:
    return kms.get("apiVersion") or KMS_V1
