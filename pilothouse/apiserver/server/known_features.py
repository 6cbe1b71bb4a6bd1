"""Feature gates of Kubernetes v1.36: stage, default, and whether the gate is locked.

The data is from upstream's versioned_feature_list.yaml and client-go's known_features.go, as kube-apiserver v1.36.4
reports it in its metric kubernetes_feature_enabled, except for gates that this server does not implement.
"""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass

ALPHA, BETA, GA, DEPRECATED = "ALPHA", "BETA", "", "DEPRECATED"
"""The stages as the metric names them."""

ALL_ALPHA, ALL_BETA = "AllAlpha", "AllBeta"


@dataclass(frozen=True, slots=True)
class Spec:
    stage: str
    default: bool
    locked: bool = False


_ALPHA_OFF = """
    APIServingWithRoutine AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions
    CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
    ControllerManagerReleaseLeaderElectionLockOnExit CrossNamespaceVolumeDataSource DRAListTypeAttributes
    DRANodeAllocatableResources DRAResourcePoolStatus DRAWorkloadResourceClaims EventedPLEG GangScheduling
    GenericWorkload HPAScaleToZero ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace LoggingAlphaOptions
    ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers
    PodLogsQuerySplitStreams PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi
    ShardedListAndWatch StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators
    TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport
    VolumeLimitScaling WindowsCPUAndMemoryAffinity WorkloadAwarePreemption WorkloadWithJob
"""

_BETA_ON = """
    APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
    AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
    ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz
    ComponentStatusz ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
    DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
    DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout
    DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles
    ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance
    HostnameOverride InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
    InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
    NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
    PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
    PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
    StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList WatchListClient
    WindowsGracefulNodeShutdown
"""

_BETA_OFF = """
    ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
    DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet
    PodCertificateRequest SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
"""

_BETA_NOT_IMPLEMENTED = """
    UnknownVersionInteroperabilityProxy
"""
# Enabled upstream. This server proxies no request to peers, so the gate is shown as disabled and cannot be enabled.

_GA_ON = """
    AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion
    MutatingAdmissionPolicy
"""

_GA_ON_LOCKED = """
    APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
    AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting
    CSIServiceAccountTokenSecrets ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess
    DeclarativeValidation DisableAllocatorDualWrite DynamicResourceAllocation ExecProbeTimeout
    ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume InOrderInformers InPlacePodVerticalScaling
    JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI
    KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing
    LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount
    NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion
    PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
    PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
    RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
    RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints
    SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
    ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport
    VolumeAttributesClass WinDSR WinOverlay
"""

_DEPRECATED_ON = """
    DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
    StorageNamespaceIndex
"""

_DEPRECATED_OFF = """
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
    DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
"""

_DEPRECATED_ON_LOCKED = """
    AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion
"""

_DEPRECATED_OFF_LOCKED = """
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
"""

_GATES = (
    (Spec(ALPHA, False), _ALPHA_OFF),
    (Spec(BETA, True), _BETA_ON),
    (Spec(BETA, False), _BETA_OFF),
    (Spec(BETA, False, locked=True), _BETA_NOT_IMPLEMENTED),
    (Spec(GA, True), _GA_ON),
    (Spec(GA, True, locked=True), _GA_ON_LOCKED),
    (Spec(DEPRECATED, True), _DEPRECATED_ON),
    (Spec(DEPRECATED, False), _DEPRECATED_OFF),
    (Spec(DEPRECATED, True, locked=True), _DEPRECATED_ON_LOCKED),
    (Spec(DEPRECATED, False, locked=True), _DEPRECATED_OFF_LOCKED),
)

KNOWN: dict[str, Spec] = {
    ALL_ALPHA: Spec(ALPHA, False),
    ALL_BETA: Spec(BETA, False),
    **{name: spec for spec, names in _GATES for name in names.split()},
}

_DEPENDENCIES = """
    ClusterTrustBundleProjection ClusterTrustBundle
    DRADeviceBindingConditions DRAResourceClaimDeviceStatus
    DRADeviceTaintRules DRADeviceTaints
    DRAResourceClaimGranularStatusAuthorization DRAResourceClaimDeviceStatus
    DRAWorkloadResourceClaims GenericWorkload
    ExtendWebSocketsToKubelet NodeDeclaredFeatures
    GangScheduling GenericWorkload
    GracefulNodeShutdownBasedOnPodPriority GracefulNodeShutdown
    InPlacePodLevelResourcesVerticalScaling PodLevelResources NodeDeclaredFeatures
    InPlacePodVerticalScalingInitContainers NodeDeclaredFeatures
    MatchLabelKeysInPodTopologySpreadSelectorMerge MatchLabelKeysInPodTopologySpread
    PodLevelResourceManagers PodLevelResources
    ResourceHealthStatusMessage ResourceHealthStatus
    RestartAllContainersOnContainerExits ContainerRestartRules NodeDeclaredFeatures
    StaleControllerConsistencyDaemonSet AtomicFIFO
    StaleControllerConsistencyJob AtomicFIFO
    StaleControllerConsistencyReplicaSet AtomicFIFO
    StaleControllerConsistencyStatefulSet AtomicFIFO
    TopologyAwareWorkloadScheduling GenericWorkload
    UserNamespacesHostNetworkSupport NodeDeclaredFeatures
    WindowsGracefulNodeShutdown GracefulNodeShutdown
    WorkloadAwarePreemption GangScheduling
    WorkloadWithJob GenericWorkload
    StorageVersionAPI APIServerIdentity
    UnknownVersionInteroperabilityProxy APIServerIdentity
"""

DEPENDENCIES: dict[str, list[str]] = {
    name: needed for name, *needed in map(str.split, _DEPENDENCIES.strip().splitlines())
}
"""gate -> gates that it requires, except gates that are always enabled"""
