"""DNS, host aliases, host names, host network and host users of a pod."""

from __future__ import annotations

from collections.abc import Sequence

from pilothouse.kinds.pods import containers_with_path
from pilothouse.kube.core.pods.validation.options import PodValidationOptions
from pilothouse.kube.validation.addresses import legacy_ip
from pilothouse.kube.validation.fields import dns_subdomain, follow
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, required, too_long
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.names import is_dns1123_subdomain_with_underscore

_MAX_NAMESERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_CHARACTERS = 2048
_MAX_HOSTNAME = 64


def validate_dns_config(spec: Json, path: Path) -> Errors:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            reason = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(path.child("nameservers"), reason)
            return
    if config is not None:
        servers = config.get("nameservers") or []
        nameservers_path = path.child("nameservers")
        if len(servers) > _MAX_NAMESERVERS:
            yield invalid(nameservers_path, servers, f"must not have more than {_MAX_NAMESERVERS} nameservers")
        for position, server in enumerate(servers):
            yield from legacy_ip(nameservers_path.index(position), server)
        searches = config.get("searches") or []
        searches_path = path.child("searches")
        if len(searches) > _MAX_SEARCHES:
            yield invalid(searches_path, searches, f"must not have more than {_MAX_SEARCHES} search paths")
        if len(" ".join(searches).encode()) > _MAX_SEARCH_CHARACTERS:
            reason = (
                f"must not have more than {_MAX_SEARCH_CHARACTERS} characters (including spaces) in the search list"
            )
            yield invalid(searches_path, searches, reason)
        for position, search in enumerate(searches):
            if search != ".":
                yield from follow(
                    is_dns1123_subdomain_with_underscore, search.removesuffix("."), searches_path.index(position)
                )
        for position, option in enumerate(config.get("options") or ()):
            if not option.get("name"):
                yield required(path.child("options").index(position), "must not be empty")


def validate_host_aliases(aliases: Sequence[Json], path: Path) -> Errors:
    for position, alias in enumerate(aliases):
        at = path.index(position)
        yield from legacy_ip(at.child("ip"), alias.get("ip") or "")
        for index, name in enumerate(alias.get("hostnames") or ()):
            yield from dns_subdomain(name, at.child("hostnames").index(index))


def validate_host_network_ports(spec: Json, path: Path, options: PodValidationOptions) -> Errors:
    """Require hostPort to equal containerPort on the host network. Templates may omit hostPort."""
    for position, container in enumerate(spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort") or 0
            if host_port != (port.get("containerPort") or 0) and (options.resource_is_pod or host_port):
                at = path.child("containers").index(position).child("ports").index(index).child("hostPort")
                yield invalid(at, host_port, "must match `containerPort` when `hostNetwork` is true")


def validate_host_users(spec: Json, path: Path, options: PodValidationOptions) -> Errors:
    """Reject a user namespace together with other namespaces of the host."""
    reason = "when `hostUsers` is false"
    if spec.get("hostNetwork") and not options.allow_user_namespaces_on_host_network:
        yield forbidden(path.child("hostNetwork"), reason)
    if spec.get("hostPID"):
        yield forbidden(path.child("HostPID"), reason)
    if spec.get("hostIPC"):
        yield forbidden(path.child("HostIPC"), reason)
    if options.allow_user_namespaces_with_devices:
        return
    for at, container in containers_with_path(spec, path):
        if container.get("volumeDevices"):
            yield forbidden(at.child("volumeDevices"), reason)


def validate_hostname_override(spec: Json, path: Path) -> Errors:
    name = spec["hostnameOverride"]
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(path, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield forbidden(path, "may not be specified when hostNetwork is true")
    if len(name.encode()) > _MAX_HOSTNAME:
        yield too_long(path, _MAX_HOSTNAME)
    yield from dns_subdomain(name, path)
