"""Completion of options: computed defaults. Only completed options can be validated and run."""

from __future__ import annotations

import logging
import os
from dataclasses import fields, replace

from pilothouse.controllers.table import enabled
from pilothouse.controlplane.options.authorization import ALWAYS_ALLOW, NOT_WITH_CONFIG
from pilothouse.controlplane.options.options import Options
from pilothouse.controlplane.options.pilothouse import default_data_dir
from pilothouse.kube.core.services.network import DEFAULT_CLUSTER_IP_RANGE
from pilothouse.machinery.dataclass import dataclass

log = logging.getLogger(__name__)


class InvalidOptions(Exception):
    """All problems of the options, in one message."""

    def __init__(self, problems: list[str]) -> None:
        unique = list(dict.fromkeys(problems))
        super().__init__(unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]")
        self.problems = unique


@dataclass(frozen=True)
class CompletedOptions(Options):
    """Options with every default computed. Created only by `complete`."""

    def validate(self) -> CompletedOptions:
        """Return self. Raises InvalidOptions with every problem."""
        if problems := list(self.problems()):
            raise InvalidOptions(problems)
        return self


def complete(options: Options) -> CompletedOptions:
    data_dir = os.path.abspath(os.path.expanduser(options.pilothouse.data_dir or str(default_data_dir())))
    kubeconfig = options.pilothouse.kubeconfig_out or os.path.join(data_dir, "admin.kubeconfig")
    authorization = options.authorization
    if authorization.config:
        beside_config = not NOT_WITH_CONFIG.isdisjoint(options.given)
        authorization = replace(authorization, given_beside_config=beside_config)
    else:
        authorization = replace(authorization, modes=authorization.modes or (ALWAYS_ALLOW,))
    pki_dir = options.replicas.pki_dir
    # Simulated nodes run no containers, so privileged pods are harmless there.
    privileged = options.misc.allow_privileged if "allow-privileged" in options.given else options.simulation.nodes > 0
    garbage_collector = () if options.generic.enable_garbage_collector else ("-garbage-collector-controller",)
    controllers = options.controllers
    ranges = options.misc.service_cluster_ip_range or DEFAULT_CLUSTER_IP_RANGE
    completed = CompletedOptions(**{field.name: getattr(options, field.name) for field in fields(options)})
    return replace(
        completed,
        pilothouse=replace(options.pilothouse, data_dir=data_dir, kubeconfig_out=os.path.abspath(kubeconfig)),
        replicas=replace(options.replicas, pki_dir=os.path.abspath(os.path.expanduser(pki_dir)) if pki_dir else ""),
        authorization=authorization,
        authentication=replace(
            options.authentication,
            anonymous_auth=_anonymous(options, authorization.modes),
            given_beside_config=frozenset(
                name for name in options.given if name == "anonymous-auth" or name.startswith("oidc-")
            ),
        ),
        oidc=replace(options.oidc, given=any(name.startswith("oidc-") for name in options.given)),
        misc=replace(options.misc, service_cluster_ip_range=ranges, allow_privileged=privileged),
        generic=replace(options.generic, advertise_address=_advertise_address(options)),
        controllers=replace(
            controllers,
            leader_elect=controllers.leader_elect
            if "leader-elect" in options.given
            else options.etcd.capabilities.shared,
            controllers=(*garbage_collector, *controllers.controllers),
            scheduler=controllers.scheduler if "scheduler" in options.given else bool(enabled(controllers.controllers)),
        ),
    )


def _anonymous(options: Options, modes: tuple[str, ...]) -> bool:
    """Disable anonymous requests with AlwaysAllow, which would grant anonymous users every permission."""
    if not options.authentication.anonymous_auth or ALWAYS_ALLOW not in modes:
        return options.authentication.anonymous_auth
    if "anonymous-auth" in options.given:
        log.warning("AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false.")
    return False


def _advertise_address(options: Options) -> str:
    advertised, bound = options.generic.advertise_address, options.secure_serving.bind_address
    if advertised and not _unspecified(advertised):
        return advertised
    return bound if bound and not _unspecified(bound) else host_address()


def _unspecified(address: str) -> bool:
    return address in ("0.0.0.0", "::")


def host_address() -> str:
    """Return the address of the interface with the default route, without sending packets."""
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
