"""Configuration of the kube server: services, kubelets, trust, admission plugins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pilothouse.apiserver.server.config import GenericConfig
from pilothouse.controlplane.certificates.ensure import simulated_kubelet
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.generic_config import ConfigParts
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.serving import client_cas
from pilothouse.kube.admission.config import AdmissionConfig
from pilothouse.kube.bootstrap.cluster_authentication_trust import ClusterAuthenticationInfo
from pilothouse.kube.server import KubeConfig


def kube_config(parts: ConfigParts, generic: GenericConfig) -> KubeConfig:
    options, proxy = parts.options, parts.front_proxy
    retired = CertificatePaths.under(Path(options.pilothouse.data_dir)).retired
    return KubeConfig(
        generic=generic,
        service_network=options.misc.service_network,
        endpoints=options.misc.endpoints,
        allow_privileged=options.misc.allow_privileged,
        serves_log_files=options.misc.enable_logs_handler,
        kubelet=replace(options.kubelet.config, simulated=simulated_kubelet(Path(options.pilothouse.data_dir))),
        address=parts.address,
        trust=ClusterAuthenticationInfo(client_cas(options), proxy.cas, proxy.allowed_names, proxy.headers, retired),
        policy=parts.authorization.policy,
        node_graph=parts.authorization.node_graph,
        service_accounts=parts.service_accounts,
        external_hostname=options.generic.external_hostname,
        registries=parts.registries,
        admission=_admission(options),
        leads=parts.place.leads,
    )


def _admission(options: CompletedOptions) -> AdmissionConfig:
    config = AdmissionConfig(
        not_ready_toleration_seconds=options.admission.not_ready_toleration_seconds,
        unreachable_toleration_seconds=options.admission.unreachable_toleration_seconds,
    )
    if not options.admission.config_file:
        return config
    # Lazy import: the parsers of YAML and kubeconfigs are slow to import and rarely needed.
    from pilothouse.controlplane.admission_configuration import (
        admission_configurations,
        static_admission,
        webhook_credentials,
    )

    configurations = admission_configurations(options.admission.config_file)
    return replace(
        config,
        configurations=configurations,
        webhook_credentials=webhook_credentials(configurations),
        static=static_admission(configurations, options.admission.enabled, options.gates),
    )
