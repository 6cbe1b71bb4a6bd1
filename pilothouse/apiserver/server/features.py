"""Feature gates of a server.

Code that serves requests calls `enabled("Name")`. Code that builds the server uses the `FeatureGates` of its
configuration. Every accepted gate has its documented effect: a gate that this server cannot implement is rejected
unless it has its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import field
from functools import cache, cached_property
from typing import Any, TypeVar

from pilothouse.apiserver.server.known_features import (
    ALL_ALPHA,
    ALL_BETA,
    ALPHA,
    BETA,
    PRE_ALPHA,
    KnownGates,
    Spec,
    known_gates,
)
from pilothouse.machinery import release, version_rules
from pilothouse.machinery.dataclass import dataclass

T = TypeVar("T")

_HONOURED = """
    APIResponseCompression AllowInsecureKubeletCertificateSigningRequests AllowParsingUserUIDFromCertAuth
    AuthorizePodWebsocketUpgradeCreatePermission CSIServiceAccountTokenSecrets ClearingNominatedNodeNameAfterBinding
    ClusterTrustBundle ClusterTrustBundleProjection ComponentFlagz ComponentStatusz ConstrainedImpersonation
    ContainerRestartRules ContainerStopSignals CrossNamespaceVolumeDataSource DRAConsumableCapacity
    DRADeviceBindingConditions DRADeviceTaintRules DRADeviceTaints DRAExtendedResource DRANodeAllocatableResources
    DRAPartitionableDevices DRAPrioritizedList DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
    DRAResourcePoolStatus DRAWorkloadResourceClaims DeploymentReplicaSetTerminatingReplicas EnvFiles
    ExcludeAdmissionWebhookVirtualResources ExtendWebSocketsToKubelet GenericWorkload HPAConfigurableTolerance
    HPAGeneration HPAScaleToZero HostnameOverride ImageVolume ImageVolumeWithDigest
    InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers KubeletInUserNamespace
    KubeletServiceAccountTokenForCredentialProviders MatchLabelKeysInPodTopologySpread
    MatchLabelKeysInPodTopologySpreadSelectorMerge MaxUnavailableStatefulSet MutableCSINodeAllocatableCount
    MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs
    MutatingAdmissionPolicy PersistentVolumeClaimUnusedSinceTime PodCertificateRequest PodDeletionCost
    PodLevelResourcesFixDefaulting PodLevelResourcesFixKubeletQOSClass PodLogsQuerySplitStreams
    PodTopologyLabelsAdmission PortForwardWebsockets RelaxedServiceNameValidation ResourceHealthStatus
    ResourceHealthStatusMessage RestartAllContainersOnContainerExits SELinuxMount ServiceAccountNodeAudienceRestriction
    ServiceCIDRStatusFieldWiping StorageVersionMigrator StrictIPCIDRValidation TaintTolerationComparisonOperators
    TopologyAwareWorkloadScheduling TranslateStreamCloseWebsocketRequests UserNamespacesHostNetworkSupport
    VolumeLimitScaling WatchList WatchListCompression WorkloadAwarePreemption WorkloadWithJob
"""

CBOR_SERVING_AND_STORAGE = "CBORServingAndStorage"

COORDINATED_LEADER_ELECTION = "CoordinatedLeaderElection"

MANIFEST_BASED_ADMISSION = "ManifestBasedAdmissionControlConfig"

HONOURED = frozenset(
    {*_HONOURED.split(), CBOR_SERVING_AND_STORAGE, COORDINATED_LEADER_ELECTION, MANIFEST_BASED_ADMISSION}
)
"""Gates that this server implements."""

_OF_OTHERS = """
    AllowDNSOnlyNodeCSR AllowServiceExternalIPs AtomicFIFO CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions
    CRIListStreaming CSIVolumeHealth ChangeContainerStatusOnKubeletRestart ClientsAllowCARotation ClientsAllowCBOR
    ClientsAllowTLSCacheGC ClientsPreferCBOR CloudControllerManagerWatchBasedRoutesReconciliation
    CloudControllerManagerWebhook ContainerCheckpoint ControllerManagerReleaseLeaderElectionLockOnExit
    CustomCPUCFSQuotaPeriod DRASchedulerFilterTimeout DisableCPUQuotaWithExclusiveCPUs EventedPLEG GangScheduling
    GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAOptimizedSelectorStore HugepageAwareEviction
    InOrderInformersBatchProcess InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory
    InTreePluginPortworxUnregister InformerResourceVersion InterPodAffinityHostnameFastPath KubeProxyIPVS
    KubeProxyNFTablesLocalhostNodePorts KubeletAllocatedPodsEndpoint KubeletCrashLoopBackOffMax
    KubeletEnsureSecretPulledImages KubeletPodResourcesListUseActivePods KubeletRegistrationGetOnExistsOnly
    KubeletSeparateDiskGC LocalStorageCapacityIsolationFSQuotaMonitoring MemoryQoS NFTablesNetlink
    NodeControllerLeaseCircuitBreaker NominatedNodeNameForExpectation OpportunisticBatching PLEGOnDemandRelist
    PodAndContainerStatsFromCRI PodLevelResourceManagers PodReadyToStartContainersCondition PodsAPI
    PreventStaticPodAPIReferences QOSReserved ReduceDefaultCrashLoopBackOffDecay ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RotateKubeletServerCertificate RuntimeClassInImageCriApi SchedulerAsyncAPICalls
    SchedulerAsyncPreemption SchedulerPopFromBackoffQ SchedulerPreQueueingHints StaleControllerConsistencyDaemonSet
    StaleControllerConsistencyHPA StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageCapacityScoring
    TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions UnlockWhileProcessingFIFO WatchListClient
    WindowsCPUAndMemoryAffinity WindowsGracefulNodeShutdown WindowsHostNetwork
"""

_OF_THE_INSIDE = """
    APIServingWithRoutine CRDObservedGenerationTracking ConcurrentWatchObjectDecode
    ConsistentListFromCacheSkipTimeoutFallback ContextualLogging DeclarativeValidationBeta DeclarativeValidationTakeover
    DetectCacheInconsistency EtcdRangeStream ListFromCacheSnapshot LoggingAlphaOptions LoggingBetaOptions
    NativeHistograms StorageNamespaceIndex UnauthenticatedHTTP2DOSMitigation WebhookRoundTripLoadBalancing
"""

WITHOUT_EFFECT = frozenset({*_OF_OTHERS.split(), *_OF_THE_INSIDE.split(), ALL_ALPHA, ALL_BETA})
"""Gates without effect on responses: gates of kubelets, schedulers and controller managers, which kube-apiserver
also ignores, and gates of upstream's internals."""


@dataclass(frozen=True)
class FeatureGates:
    """The gates of one server: explicit values over defaults.

    >>> from pilothouse.apiserver.server.features import FeatureGates
    >>> gates = FeatureGates({"AllAlpha": True, "GenericWorkload": False})
    >>> gates.enabled("HPAScaleToZero"), gates.enabled("GenericWorkload"), gates.enabled("EnvFiles")
    (True, False, True)
    """

    changed: Mapping[str, bool] = field(default_factory=dict)
    emulated: int = 0
    """Emulated minor version; 0: the version of the release."""
    min_compatibility: int = 0
    """Minor version of the oldest compatible server; 0: one before the emulated version."""

    @property
    def versions(self) -> tuple[int, int]:
        """Minor versions: (emulated, min compatibility)."""
        emulated = self.emulated or release.current().minor
        return emulated, self.min_compatibility or emulated - 1

    @cached_property
    def known(self) -> KnownGates:
        return known_gates(release.current().minor, *self.versions)

    @cached_property
    def values(self) -> dict[str, bool]:
        """gate -> whether it is enabled, for the gates of all versions"""
        known = {name: self._value(spec) for name, spec in self.known.specs.items()}
        return {**self.known.implied, **known, **self.changed}

    @cached_property
    def resolved(self) -> _ResolvedGates:
        """The form of the gates that `serve_with` sets for requests."""
        return _ResolvedGates(self)

    def enabled(self, name: str) -> bool:
        """Return whether a gate is enabled. Raises KeyError for a gate that no version has."""
        return self.values[name]

    def _value(self, spec: Spec) -> bool:
        if spec.locked:
            return spec.default
        if spec.stage == ALPHA and ALL_ALPHA in self.changed:
            return self.changed[ALL_ALPHA]
        if spec.stage == BETA and ALL_BETA in self.changed:
            return self.changed[ALL_BETA]
        return spec.default

    def problems(self) -> Iterator[str]:
        """Yield the problems of the gates, in upstream's words if upstream rejects them, too."""
        unknown = [name for name in self.changed if name not in self.known.specs]
        if unknown:
            yield f"unrecognized feature gate: {unknown[0]}"
            return
        refused = [*self._locked()]
        yield from refused or self._unmet()
        yield from self._not_followed()

    def publish(self) -> None:
        """Publish the gates as metrics of this process, instead of the gates of an earlier server."""
        from pilothouse.apiserver.server.feature_metrics import ENABLED  # not needed for flags and help

        ENABLED.clear()
        for name, spec in self.known.specs.items():
            if spec.stage != PRE_ALPHA:
                ENABLED.labels(name, spec.stage).set(self.enabled(name))

    def _locked(self) -> Iterator[str]:
        for name, value in self.changed.items():
            spec, shown = self.known.specs[name], str(value).lower()
            if spec.locked and value != spec.default:
                yield f"cannot set feature gate {name} to {shown}, feature is locked to {str(spec.default).lower()}"
            elif spec.stage == PRE_ALPHA:
                emulated, oldest = self.versions
                problem = f"cannot set feature gate {name} to {shown}, feature is PreAlpha at emulated version"
                if version_rules.holds("MinCompatibilityVersionFlag"):
                    yield f"{problem} 1.{emulated}, min compatibility version 1.{oldest}"
                else:
                    yield f"{problem} 1.{emulated}"

    def _unmet(self) -> Iterator[str]:
        if not version_rules.holds("FeatureGateDependencies"):
            return
        for name, needed in self.known.dependencies.items():
            off = [each for each in needed if not self.enabled(each)]
            if off and self.enabled(name):
                yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"

    def _not_followed(self) -> Iterator[str]:
        for name, spec in self.known.specs.items():
            value = self.enabled(name)
            if value != spec.default and not spec.locked and name not in HONOURED | WITHOUT_EFFECT:
                yield f"feature gate {name}={str(value).lower()} is not supported by this version"


class _ResolvedGates:
    """The gates of one configuration, and the results of `per_gates` functions for the configuration."""

    __slots__ = ("results", "values")

    def __init__(self, gates: FeatureGates) -> None:
        self.values = gates.values
        self.results: dict[Callable[[], Any], Any] = {}


_SERVING: ContextVar[_ResolvedGates | None] = ContextVar("feature gates", default=None)


@cache
def _default_gates() -> _ResolvedGates:
    """Return the gates of the release with their defaults, for code outside of requests."""
    return _ResolvedGates(FeatureGates())


def enabled(name: str) -> bool:
    """Return whether a feature is enabled in the server of the current request; outside of requests, by default.

    A gate that the release does not have is enabled if the release behaves so. Raises KeyError for a gate that no
    version has.
    """
    return (_SERVING.get() or _default_gates()).values[name]


def serve_with(gates: FeatureGates) -> None:
    """Make `enabled` use the given gates in the current task and in tasks started by it."""
    _SERVING.set(gates.resolved)


def per_gates(resolve: Callable[[], T]) -> Callable[[], T]:
    """Cache the result of a function for each configuration. The result must depend on feature gates alone."""

    def resolved() -> T:
        results = (_SERVING.get() or _default_gates()).results
        try:
            result: T = results[resolve]
        except KeyError:
            result = results[resolve] = resolve()
        return result

    return resolved
