"""Completion: what the command line left open, filled in. Only completed options can be validated and run."""

from __future__ import annotations

import logging
import os
from dataclasses import fields, replace

from pilothouse.controllers.table import enabled
from pilothouse.controlplane.options.authentication import AuthenticationOptions
from pilothouse.controlplane.options.authorization import ALWAYS_ALLOW, NOT_WITH_CONFIG, AuthorizationOptions
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.options.pilothouse import default_data_dir
from pilothouse.kube.core.services.network import DEFAULT_CLUSTER_IP_RANGE
from pilothouse.machinery.dataclass import dataclass

log = logging.getLogger(__name__)


class InvalidOptions(Exception):
    """All that is wrong with the options, in one message."""

    def __init__(self, problems: list[str]) -> None:
        unique = list(dict.fromkeys(problems))
        super().__init__(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")
        self.problems = unique


@dataclass(frozen=True)
class CompletedOptions(Options):
    """Made by `complete` only."""

    def validate(self) -> CompletedOptions:
        """Raises InvalidOptions with every problem there is."""
        if problems := list(self.problems()):
            raise InvalidOptions(problems)
        return self


def complete(options: Options) -> CompletedOptions:
    data_dir = os.path.abspath(os.path.expanduser(options.pilothouse.data_dir or str(default_data_dir())))
    kubeconfig = options.pilothouse.kubeconfig_out or os.path.join(data_dir, "admin.kubeconfig")
    authorization = _authorization(options)
    ranges = options.misc.service_cluster_ip_range or DEFAULT_CLUSTER_IP_RANGE
    completed = CompletedOptions(**{field.name: getattr(options, field.name) for field in fields(options)})
    return replace(
        completed,
        pilothouse=replace(options.pilothouse, data_dir=data_dir, kubeconfig_out=os.path.abspath(kubeconfig)),
        replicas=replace(options.replicas, pki_dir=_absolute(options.replicas.pki_dir)),
        authorization=authorization,
        authentication=_authentication(options, authorization.modes),
        oidc=replace(options.oidc, given=any(name.startswith("oidc-") for name in options.given)),
        misc=replace(options.misc, service_cluster_ip_range=ranges, allow_privileged=_allow_privileged(options)),
        generic=replace(options.generic, advertise_address=_advertise_address(options)),
        controllers=replace(
            options.controllers,
            leader_elect=_leader_elect(options),
            controllers=_controllers(options),
            scheduler=_scheduler(options),
        ),
    )


def _absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path)) if path else ""


def _authorization(options: Options) -> AuthorizationOptions:
    given = options.authorization
    if given.config:
        return replace(given, given_beside_config=not NOT_WITH_CONFIG.isdisjoint(options.given))
    return replace(given, modes=given.modes or (ALWAYS_ALLOW,))


def _authentication(options: Options, modes: tuple[str, ...]) -> AuthenticationOptions:
    beside = frozenset(name for name in options.given if name == "anonymous-auth" or name.startswith("oidc-"))
    anonymous = _anonymous(options, modes)
    return replace(options.authentication, anonymous_auth=anonymous, given_beside_config=beside)


def _anonymous(options: Options, modes: tuple[str, ...]) -> bool:
    """Anonymous users with every right would be no authentication at all."""
    if not options.authentication.anonymous_auth or ALWAYS_ALLOW not in modes:
        return options.authentication.anonymous_auth
    if "anonymous-auth" in options.given:
        log.warning("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false.")
    return False


def _controllers(options: Options) -> tuple[str, ...]:
    """The flag is kube-controller-manager's as well, and the controllers are in here."""
    collector = () if options.generic.enable_garbage_collector else ("-garbage-collector-controller",)
    return (*collector, *options.controllers.controllers)


def _scheduler(options: Options) -> bool:
    """Where no controller runs nothing moves but what clients move, unless a flag says otherwise."""
    chosen = options.controllers
    return chosen.scheduler if "scheduler" in options.given else bool(enabled(chosen.controllers))


def _leader_elect(options: Options) -> bool:
    """Default to electing a leader only in a store that other servers can share."""
    return options.controllers.leader_elect if "leader-elect" in options.given else options.etcd.capabilities.shared


def _allow_privileged(options: Options) -> bool:
    """On simulated nodes nothing runs that could have privileges, and what people install there asks for them."""
    given = "allow-privileged" in options.given
    return options.misc.allow_privileged if given else options.simulation.nodes > 0


def _advertise_address(options: Options) -> str:
    given, bound = options.generic.advertise_address, options.secure_serving.bind_address
    if given and not _unspecified(given):
        return given
    return bound if bound and not _unspecified(bound) else host_address()


def _unspecified(address: str) -> bool:
    return address in ("0.0.0.0", "::")


def host_address() -> str:
    """The address of the interface with the default route; nothing is sent to find it out."""
    import socket

    for family, anywhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((anywhere, 9))
            except OSError:
                continue
            address: str = probe.getsockname()[0]
            return address
    return "127.0.0.1"
