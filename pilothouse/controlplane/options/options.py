"""All options of the server.

complete(Options.parse(arguments)).validate()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from ipaddress import ip_address
from typing import Any

from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.server.run_options import ServerRunOptions
from pilothouse.controlplane.options import single_controllers, upstream_flags
from pilothouse.controlplane.options.admission import AdmissionOptions
from pilothouse.controlplane.options.api_enablement import (
    MIN_COMPATIBILITY_VERSION,
    APIEnablementOptions,
    CompatibilityOptions,
    FeatureOptions,
)
from pilothouse.controlplane.options.audit import AuditOptions
from pilothouse.controlplane.options.authentication import (
    AuthenticationOptions,
    OIDCOptions,
    RequestHeaderOptions,
    TokenWebhookOptions,
)
from pilothouse.controlplane.options.authorization import ALWAYS_ALLOW, AuthorizationOptions
from pilothouse.controlplane.options.connections import AggregatorOptions, EgressSelectorOptions, KubeletOptions
from pilothouse.controlplane.options.controllers import ControllerOptions
from pilothouse.controlplane.options.etcd import EtcdOptions
from pilothouse.controlplane.options.misc import MiscOptions
from pilothouse.controlplane.options.observability import LogsOptions, TracingOptions
from pilothouse.controlplane.options.pilothouse import PilothouseOptions, choose_release
from pilothouse.controlplane.options.replicas import CoordinatedLeadershipOptions, ReplicaOptions
from pilothouse.controlplane.options.serving import InsecureServingOptions, SecureServingOptions
from pilothouse.controlplane.options.simulation import SimulationOptions
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import (
    Flag,
    FlagError,
    build,
    flags_of,
    format_section,
    help_sections,
    parse,
    shown_values,
)
from pilothouse.machinery.gofmt import quoted_list

SECTIONS: dict[str, type[Any]] = {
    "pilothouse": PilothouseOptions,
    "simulation": SimulationOptions,
    "replicas": ReplicaOptions,
    "controllers": ControllerOptions,
    "endpoint_controllers": single_controllers.EndpointControllerOptions,
    "autoscaler": single_controllers.AutoscalerOptions,
    "node_controllers": single_controllers.NodeControllerOptions,
    "generic": ServerRunOptions,
    "etcd": EtcdOptions,
    "secure_serving": SecureServingOptions,
    "insecure_serving": InsecureServingOptions,
    "audit": AuditOptions,
    "features": FeatureOptions,
    "compatibility": CompatibilityOptions,
    "authentication": AuthenticationOptions,
    "oidc": OIDCOptions,
    "token_webhook": TokenWebhookOptions,
    "authorization": AuthorizationOptions,
    "api_enablement": APIEnablementOptions,
    "egress_selector": EgressSelectorOptions,
    "admission": AdmissionOptions,
    "logs": LogsOptions,
    "traces": TracingOptions,
    "kubelet": KubeletOptions,
    "misc": MiscOptions,
    "coordinated_leadership": CoordinatedLeadershipOptions,
    "aggregator": AggregatorOptions,
    "request_header": RequestHeaderOptions,
}
"""attribute of Options -> section, in the order of the help."""


@dataclass(frozen=True)
class Options:
    generic: ServerRunOptions = field(default_factory=ServerRunOptions)
    etcd: EtcdOptions = field(default_factory=EtcdOptions)
    secure_serving: SecureServingOptions = field(default_factory=SecureServingOptions)
    insecure_serving: InsecureServingOptions = field(default_factory=InsecureServingOptions)
    audit: AuditOptions = field(default_factory=AuditOptions)
    features: FeatureOptions = field(default_factory=FeatureOptions)
    compatibility: CompatibilityOptions = field(default_factory=CompatibilityOptions)
    authentication: AuthenticationOptions = field(default_factory=AuthenticationOptions)
    oidc: OIDCOptions = field(default_factory=OIDCOptions)
    token_webhook: TokenWebhookOptions = field(default_factory=TokenWebhookOptions)
    authorization: AuthorizationOptions = field(default_factory=AuthorizationOptions)
    api_enablement: APIEnablementOptions = field(default_factory=APIEnablementOptions)
    egress_selector: EgressSelectorOptions = field(default_factory=EgressSelectorOptions)
    admission: AdmissionOptions = field(default_factory=AdmissionOptions)
    logs: LogsOptions = field(default_factory=LogsOptions)
    traces: TracingOptions = field(default_factory=TracingOptions)
    kubelet: KubeletOptions = field(default_factory=KubeletOptions)
    misc: MiscOptions = field(default_factory=MiscOptions)
    coordinated_leadership: CoordinatedLeadershipOptions = field(default_factory=CoordinatedLeadershipOptions)
    aggregator: AggregatorOptions = field(default_factory=AggregatorOptions)
    request_header: RequestHeaderOptions = field(default_factory=RequestHeaderOptions)
    controllers: ControllerOptions = field(default_factory=ControllerOptions)
    endpoint_controllers: single_controllers.EndpointControllerOptions = field(
        default_factory=single_controllers.EndpointControllerOptions
    )
    autoscaler: single_controllers.AutoscalerOptions = field(default_factory=single_controllers.AutoscalerOptions)
    node_controllers: single_controllers.NodeControllerOptions = field(
        default_factory=single_controllers.NodeControllerOptions
    )
    simulation: SimulationOptions = field(default_factory=SimulationOptions)
    replicas: ReplicaOptions = field(default_factory=ReplicaOptions)
    pilothouse: PilothouseOptions = field(default_factory=PilothouseOptions)
    given: frozenset[str] = frozenset()
    """Names of the flags on the command line."""
    without_effect: Mapping[str, Any] = field(default_factory=dict)
    """Values of given flags without effect."""

    @classmethod
    def parse(cls, arguments: Iterable[str]) -> Options:
        """Parse a command line, and choose the release that it names. Raises FlagError."""
        arguments = list(arguments)
        choose_release(arguments)
        parsed = parse(all_flags(), arguments)
        if positionals := [word for word in parsed.positionals if word]:
            raise FlagError(f'"pilothouse serve" does not take any arguments, got {quoted_list(positionals)}')
        sections = {name: build(section, parsed.values) for name, section in SECTIONS.items()}
        return cls(**sections, given=frozenset(parsed.values), without_effect=parsed.values)

    @property
    def gates(self) -> FeatureGates:
        """Feature gates at the emulated version."""
        return self.features.gates(self.compatibility)

    def shown(self) -> dict[str, str]:
        """Return the values of all flags that have an effect, by name."""
        return {name: value for part in SECTIONS for name, value in shown_values(getattr(self, part)).items()}

    def problems(self) -> Iterator[str]:
        """Yield every problem, section by section."""
        for name in sorted(self.given & upstream_flags.UNSUPPORTED_NAMES):
            yield f"--{name} is not supported by this version"
        yield from upstream_flags.refused_values(self.without_effect)
        for name in SECTIONS:
            problems = [*getattr(self, name).validate()]
            if name == "compatibility" and not problems:
                problems = [*self.gates.problems()]
            yield from problems
        if not self.etcd.capabilities.shared and (self.replicas.join or self.replicas.join_file):
            yield "--join and --join-file need --etcd-servers: the keys are in the store that all servers share"
        if self.pilothouse.testing:
            address, modes = self.secure_serving.bind_address, self.authorization.modes
            if not ip_address(address).is_loopback and (not modes or ALWAYS_ALLOW in modes):
                yield (
                    f"--testing with --bind-address={address} needs --authorization-mode=Node,RBAC: "
                    "without authorization, everybody in the network could inject faults and restore snapshots"
                )
            if self.pilothouse.workers != "1":
                yield f"--testing needs one process that serves, not --workers={self.pilothouse.workers}"


_FLAGS_OF_RULES = {
    MIN_COMPATIBILITY_VERSION: "MinCompatibilityVersionFlag",
    "tls-curve-preferences": "TLSCurvePreferencesFlag",
}
"""flag -> rule of the Kubernetes versions that have the flag; other flags exist in every version"""


def all_flags() -> list[Flag]:
    """Return the flags of the release of this process."""
    flags = [flag for section in SECTIONS.values() for flag in flags_of(section)]
    flags += [*upstream_flags.WITHOUT_EFFECT, *upstream_flags.UNSUPPORTED]
    missing = {name for name, rule in _FLAGS_OF_RULES.items() if not version_rules.holds(rule)}
    return [flag for flag in flags if flag.name not in missing]


def shown_flags(arguments: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield every flag with its value as text, by name. Raises FlagError."""
    flags = sorted(all_flags(), key=lambda flag: flag.name)
    values = parse(flags, arguments).values
    for flag in flags:
        value = values.get(flag.name, "" if flag.default is None else flag.default)
        yield flag.name, flag.shown(value)


def usage_sections(columns: int = 0) -> Iterator[str]:
    """Yield the help text: Pilothouse's flags by task, then the groups of kube-controller-manager and kube-
    apiserver."""
    for title, flags in help_sections(SECTIONS.values()):
        yield format_section(title, flags, columns)
    yield format_section(upstream_flags.WITHOUT_EFFECT_TITLE, upstream_flags.WITHOUT_EFFECT, columns)
