"""Volumes that are reached over a network protocol."""

from __future__ import annotations

import re

from pilothouse.kube.validation.fields import non_empty
from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.pattern_format import inclusive_range_error

ISCSI_NAME_TOO_LONG = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)

_INITIATORS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[^,;*&$|\t\n\f\r ]+\Z"),
    "eui": re.compile(r"\Aeui.[A-Za-z0-9]{16}\Z"),
    "naa": re.compile(r"\Anaa.[A-Za-z0-9]{32}\Z"),
}
_MAX_LUN = 255
_REGISTRY = "must be a host:port pair or multiple pairs separated by commas"
_MAX_TENANT = 64
_MAX_ISCSI_NAME = 64


def validate_nfs(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("server"), path.child("server"))
    yield from non_empty(source.get("path"), path.child("path"))
    if not (source.get("path") or "").startswith("/"):
        yield invalid(path.child("path"), source.get("path") or "", "must be an absolute path")


def validate_iscsi(source: Json, path: Path) -> Errors:
    yield from non_empty(source.get("targetPortal"), path.child("targetPortal"))
    if not source.get("iqn"):
        yield required(path.child("iqn"))
    else:
        yield from _validate_initiator(source["iqn"], path.child("iqn"))
    yield from _validate_lun(source.get("lun") or 0, path.child("lun"))
    needs_secret = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if needs_secret and source.get("secretRef") is None:
        yield required(path.child("secretRef"))
    if source.get("initiatorName") is not None:
        yield from _validate_initiator(source["initiatorName"], path.child("initiatorname"))


def is_iscsi_name_too_long(source: Json, volume_name: str) -> bool:
    """Return whether the name of an interface that is made for the initiator would be too long: ISCSI_NAME_TOO_LONG."""
    name = f"{volume_name}:{source.get('targetPortal') or ''}"
    return source.get("initiatorName") is not None and len(name.encode()) > _MAX_ISCSI_NAME


def _validate_initiator(name: str, path: Path) -> Errors:
    pattern = _INITIATORS.get(name[:3])
    if pattern is None:
        yield invalid(path, name, "must be valid format starting with iqn, eui, or naa")
    elif not pattern.search(name):
        yield invalid(path, name, "must be valid format")


def _validate_lun(lun: int, path: Path) -> Errors:
    if not 0 <= lun <= _MAX_LUN:
        yield invalid(path, lun, inclusive_range_error(0, _MAX_LUN))


def validate_fibre_channel(source: Json, path: Path) -> Errors:
    names, ids = source.get("targetWWNs"), source.get("wwids")
    if not names and not ids:
        yield required(path.child("targetWWNs"), "must specify either targetWWNs or wwids, but not both")
    if names and ids:
        why = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid(path.child("targetWWNs"), names, why)
    if names:
        if source.get("lun") is None:
            yield required(path.child("lun"), "lun is required if targetWWNs is specified")
        else:
            yield from _validate_lun(source["lun"], path.child("lun"))


def validate_quobyte(source: Json, path: Path) -> Errors:
    registry = source.get("registry") or ""
    if not registry:
        yield required(path.child("registry"), _REGISTRY)
    elif len((source.get("tenant") or "").encode()) > _MAX_TENANT:
        why = "must be a UUID and may not exceed a length of 64 characters"
        yield required(path.child("tenant"), why)
    else:
        for pair in registry.split(","):
            if not is_host_port(pair):
                yield invalid(path.child("registry"), registry, _REGISTRY)
    yield from non_empty(source.get("volume"), path.child("volume"))


def is_host_port(text: str) -> bool:
    """Return whether Go's net.SplitHostPort takes the text: an IPv6 host stands in brackets, nothing else has any."""
    host, colon, port = text.rpartition(":")
    if not colon or "[" in port or "]" in port:
        return False
    if host.startswith("[") and host.endswith("]"):
        return "[" not in host[1:] and "]" not in host[:-1]
    return not any(char in host for char in "[]:")
