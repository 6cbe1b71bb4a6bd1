"""Configuration of the controllers in the server process, from the options."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pilothouse.controllers import config
from pilothouse.controllers.context import ControllerConfig
from pilothouse.controllers.serviceaccount.token_secrets import LEGACY_ISSUER
from pilothouse.controlplane.authentication.setup import service_account_config
from pilothouse.controlplane.certificates.paths import CertificatePaths
from pilothouse.controlplane.options.completion import CompletedOptions
from pilothouse.controlplane.options.single_controllers import NodeControllerOptions
from pilothouse.kube.admission.quota.registry import evaluator_of
from pilothouse.kube.serviceaccount.keys import SigningKey, TokenIssuer

_SHARED_STORE_GRACE, _OWN_STORE_GRACE = 5.0, 0.5
"""Seconds before a terminating namespace is emptied. Servers that share a store observe the termination late; on a
local store only in-flight requests do."""


def controller_config(options: CompletedOptions) -> ControllerConfig:
    """Build the configuration; reads certificate files. Raises OSError."""
    gates = options.gates
    serving_pair = options.secure_serving.given_pair
    signing_key_file = service_account_config(options).signing_key_file
    given, own = options.controllers, CertificatePaths.under(Path(options.pilothouse.data_dir))
    # Without --root-ca-file a given serving certificate is its own trust anchor.
    root_ca = Path(given.root_ca_file or (serving_pair.cert_file if serving_pair else own.ca_cert))
    return ControllerConfig(
        concurrent_namespace_syncs=given.concurrent_namespace_syncs,
        namespace_deletion_grace_period=_SHARED_STORE_GRACE if options.etcd.capabilities.shared else _OWN_STORE_GRACE,
        concurrent_daemonset_syncs=given.concurrent_daemonset_syncs,
        concurrent_deployment_syncs=given.concurrent_deployment_syncs,
        concurrent_gc_syncs=given.concurrent_gc_syncs,
        concurrent_rc_syncs=given.concurrent_rc_syncs,
        concurrent_replicaset_syncs=given.concurrent_replicaset_syncs,
        concurrent_serviceaccount_token_syncs=given.concurrent_serviceaccount_token_syncs,
        concurrent_resource_quota_syncs=given.concurrent_resource_quota_syncs,
        resource_quota_sync_period=given.resource_quota_sync_period,
        quota_evaluators=evaluator_of,
        endpoints=config.EndpointConfig(**asdict(options.endpoint_controllers)),
        root_ca=root_ca.read_bytes(),
        root_ca_file=root_ca,
        sign_token=TokenIssuer(LEGACY_ISSUER, SigningKey(signing_key_file)).sign if signing_key_file else None,
        legacy_service_account_token_clean_up_period=given.legacy_service_account_token_clean_up_period,
        cluster_signing_cert_file=Path(given.cluster_signing_cert_file or own.ca_cert),
        cluster_signing_key_file=Path(given.cluster_signing_key_file or own.ca_key),
        cluster_signing_duration=given.cluster_signing_duration,
        terminated_pod_gc_threshold=given.terminated_pod_gc_threshold,
        concurrent_statefulset_syncs=given.concurrent_statefulset_syncs,
        concurrent_ttl_after_finished_syncs=given.concurrent_ttl_after_finished_syncs,
        concurrent_cron_job_syncs=given.concurrent_cron_job_syncs,
        autoscaler=config.AutoscalerConfig(
            **asdict(options.autoscaler),
            configurable_tolerance=gates.enabled("HPAConfigurableTolerance"),
            scale_to_zero=gates.enabled("HPAScaleToZero"),
        ),
        jobs=config.JobConfig(
            concurrent_syncs=given.concurrent_job_syncs,
            mutable_scheduling_directives=gates.enabled("MutableSchedulingDirectivesForSuspendedJobs"),
        ),
        concurrent_ephemeralvolume_syncs=given.concurrent_ephemeralvolume_syncs,
        pvclaimbinder_sync_period=given.pvclaimbinder_sync_period,
        node_lifecycle=node_lifecycle_config(options.node_controllers),
        node_ipam=node_ipam_config(options.node_controllers, options.misc.service_network.cluster_ip_ranges),
        simulated_load_balancer_range=given.simulated_load_balancer_range,
    )


def node_lifecycle_config(given: NodeControllerOptions) -> config.NodeLifecycleConfig:
    return config.NodeLifecycleConfig(
        node_monitor_period=given.node_monitor_period,
        node_startup_grace_period=given.node_startup_grace_period,
        node_monitor_grace_period=given.node_monitor_grace_period,
        node_eviction_rate=given.node_eviction_rate,
        secondary_node_eviction_rate=given.secondary_node_eviction_rate,
        large_cluster_size_threshold=given.large_cluster_size_threshold,
        unhealthy_zone_threshold=given.unhealthy_zone_threshold,
    )


def node_ipam_config(given: NodeControllerOptions, service_cidrs: tuple[str, ...] = ()) -> config.NodeIPAMConfig:
    return config.NodeIPAMConfig(
        allocate_node_cidrs=given.allocate_node_cidrs,
        cluster_cidrs=tuple(filter(None, given.cluster_cidr.split(","))),
        node_cidr_mask_size_ipv4=given.node_cidr_mask_size_ipv4,
        node_cidr_mask_size_ipv6=given.node_cidr_mask_size_ipv6,
        service_cidrs=service_cidrs,
    )
