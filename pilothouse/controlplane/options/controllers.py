"""kube-controller-manager's flags of the controllers in the server process."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from typing import ClassVar

from pilothouse.controllers.table import ALL, CONTROLLERS, unknown
from pilothouse.controlplane.options.files import missing_files
from pilothouse.controlplane.options.pilothouse import TaskGroup
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.flags import BOOL, DURATION, INT, STRING, STRINGS, flag


@dataclass(frozen=True)
class ControllerOptions:
    title: ClassVar[str] = "controllers"

    controllers: tuple[str, ...] = flag(
        "controllers",
        STRINGS,
        (ALL,),
        "The controllers to run: '*' for those on by default, '-*' for none, 'foo' for foo, '-foo' for all that '*'"
        f" stands for but foo. There are: {', '.join(controller.name for controller in CONTROLLERS)}.",
    )
    scheduler: bool = flag(
        "scheduler",
        BOOL,
        True,
        "Run the scheduler; off by default if --controllers enables none.",
        group=TaskGroup.SIMULATION,
    )
    cluster_signing_cert_file: str = flag(
        "cluster-signing-cert-file",
        STRING,
        "",
        "File with the CA that signs CertificateSigningRequests. By default, the CA in --data-dir.",
    )
    cluster_signing_key_file: str = flag("cluster-signing-key-file", STRING, "", "File with the key of that CA.")
    cluster_signing_duration: float = flag(
        "cluster-signing-duration", DURATION, 365 * 24 * 3600.0, "How long certificates that are signed live at most."
    )
    concurrent_cron_job_syncs: int = flag(
        "concurrent-cron-job-syncs", INT, 5, "How many cron jobs are worked on at once."
    )
    concurrent_daemonset_syncs: int = flag(
        "concurrent-daemonset-syncs", INT, 2, "How many daemon sets are worked on at once."
    )
    concurrent_deployment_syncs: int = flag(
        "concurrent-deployment-syncs", INT, 5, "How many deployments are worked on at once."
    )
    concurrent_gc_syncs: int = flag(
        "concurrent-gc-syncs", INT, 20, "How many objects the garbage collector works on at once."
    )
    concurrent_job_syncs: int = flag("concurrent-job-syncs", INT, 5, "How many jobs are worked on at once.")
    concurrent_namespace_syncs: int = flag(
        "concurrent-namespace-syncs", INT, 10, "How many namespaces are emptied at once."
    )
    concurrent_rc_syncs: int = flag(
        "concurrent-rc-syncs", INT, 5, "How many replication controllers are worked on at once."
    )
    concurrent_replicaset_syncs: int = flag(
        "concurrent-replicaset-syncs", INT, 5, "How many replica sets are worked on at once."
    )
    concurrent_resource_quota_syncs: int = flag(
        "concurrent-resource-quota-syncs", INT, 5, "How many resource quotas are added up at once."
    )
    resource_quota_sync_period: float = flag(
        "resource-quota-sync-period", DURATION, 300.0, "How often what quotas say is used is added up anew."
    )
    concurrent_serviceaccount_token_syncs: int = flag(
        "concurrent-serviceaccount-token-syncs",
        INT,
        5,
        "How many token secrets of service accounts are filled at once.",
    )
    concurrent_statefulset_syncs: int = flag(
        "concurrent-statefulset-syncs", INT, 5, "How many stateful sets are worked on at once."
    )
    concurrent_ttl_after_finished_syncs: int = flag(
        "concurrent-ttl-after-finished-syncs", INT, 5, "How many finished jobs are deleted at once."
    )
    concurrent_ephemeralvolume_syncs: int = flag(
        "concurrent-ephemeralvolume-syncs", INT, 5, "For how many pods claims of ephemeral volumes are made at once."
    )
    pvclaimbinder_sync_period: float = flag(
        "pvclaimbinder-sync-period",
        DURATION,
        15.0,
        "How often claims without a volume are looked at again, and volumes without a claim.",
    )
    simulated_load_balancer_range: str = flag(
        "simulated-load-balancer-range",
        STRING,
        "192.0.2.0/24",
        "Address range of LoadBalancer services on simulated nodes.",
        group=TaskGroup.SIMULATION,
    )
    terminated_pod_gc_threshold: int = flag(
        "terminated-pod-gc-threshold", INT, 12500, "How many pods that have ended are kept; with 0 or less, all."
    )
    root_ca_file: str = flag(
        "root-ca-file",
        STRING,
        "",
        "File with the CA that pods shall trust this server by. By default, what signed the serving certificate.",
    )
    legacy_service_account_token_clean_up_period: float = flag(
        "legacy-service-account-token-clean-up-period",
        DURATION,
        365 * 24 * 3600.0,
        "How long a token secret that was made for an account must be unused before it is deleted.",
    )
    use_service_account_credentials: bool = flag(
        "use-service-account-credentials",
        BOOL,
        True,
        "Let each controller act as a service account of its own, with the rights that the account has.",
    )
    leader_elect: bool = flag(
        "leader-elect",
        BOOL,
        False,
        "Run the controllers only while holding a lease. True by default with --etcd-servers, and else false.",
    )
    lease_duration: float = flag(
        "leader-elect-lease-duration", DURATION, 15.0, "How long others wait for a leader that no longer renews."
    )
    renew_deadline: float = flag(
        "leader-elect-renew-deadline", DURATION, 10.0, "How long a leader that can not renew goes on."
    )
    retry_period: float = flag(
        "leader-elect-retry-period", DURATION, 2.0, "How long to wait between attempts to get or renew the lease."
    )
    lease_name: str = flag("leader-elect-resource-name", STRING, "kube-controller-manager", "The name of the lease.")
    lease_namespace: str = flag("leader-elect-resource-namespace", STRING, "kube-system", "The namespace of the lease.")

    def validate(self) -> Iterator[str]:
        for name in unknown(self.controllers):
            yield f'"{name}" is not in the list of known controllers'
        signing = {
            "cluster-signing-cert-file": self.cluster_signing_cert_file,
            "cluster-signing-key-file": self.cluster_signing_key_file,
        }
        yield from missing_files({"root-ca-file": self.root_ca_file, **signing})
        if bool(self.cluster_signing_cert_file) != bool(self.cluster_signing_key_file):
            yield "cannot specify only one of --cluster-signing-cert-file and --cluster-signing-key-file"
        if self.cluster_signing_duration <= 0:
            yield "cluster-signing-duration must be greater than 0"
        for name, number in (
            ("daemonset", self.concurrent_daemonset_syncs),
            ("cron-job", self.concurrent_cron_job_syncs),
            ("deployment", self.concurrent_deployment_syncs),
            ("gc", self.concurrent_gc_syncs),
            ("job", self.concurrent_job_syncs),
            ("namespace", self.concurrent_namespace_syncs),
            ("rc", self.concurrent_rc_syncs),
            ("replicaset", self.concurrent_replicaset_syncs),
            ("resource-quota", self.concurrent_resource_quota_syncs),
            ("serviceaccount-token", self.concurrent_serviceaccount_token_syncs),
            ("statefulset", self.concurrent_statefulset_syncs),
            ("ttl-after-finished", self.concurrent_ttl_after_finished_syncs),
            ("ephemeralvolume", self.concurrent_ephemeralvolume_syncs),
        ):
            if number < 1:
                yield f"concurrent-{name}-syncs must be greater than 0, but got {number}"
        try:
            ip_network(self.simulated_load_balancer_range)
        except ValueError as error:
            yield f"--simulated-load-balancer-range: {error}"
        if self.legacy_service_account_token_clean_up_period <= 0:
            yield "legacy-service-account-token-clean-up-period must be greater than 0"
        if self.leader_elect:
            yield from self._validate_election_times()

    def _validate_election_times(self) -> Iterator[str]:
        from pilothouse.client.leaderelection.elector import ElectionTimes

        try:
            ElectionTimes(
                lease_duration=self.lease_duration,
                renew_deadline=self.renew_deadline,
                retry_period=self.retry_period,
            )
        except ValueError as error:
            yield str(error)
