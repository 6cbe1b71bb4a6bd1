"""Feature gates of Kubernetes 1.34 to 1.37: stage, default, and whether the gate is locked, in each version.

`python -m tools.feature_gates` prints both tables from upstream's lists. The gates of a server are the gates that the
binary of its release has, at its emulated version.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pilothouse.machinery.dataclass import dataclass

ALPHA, BETA, GA, DEPRECATED, PRE_ALPHA = "ALPHA", "BETA", "", "DEPRECATED", "PRE-ALPHA"
"""The stages as the metric names them."""

ALL_ALPHA, ALL_BETA = "AllAlpha", "AllBeta"


@dataclass(frozen=True, slots=True)
class Spec:
    stage: str
    default: bool
    locked: bool = False


_FIRST_COLUMN = 31
_NOT_YET, _REMOVED = "-", "."
_NOT_AVAILABLE = Spec(PRE_ALPHA, False)
_SPECS = {_NOT_YET: _NOT_AVAILABLE} | {
    (letter.upper() if default else letter) + ("!" if locked else ""): Spec(stage, default, locked)
    for letter, stage in {"a": ALPHA, "b": BETA, "g": GA, "d": DEPRECATED}.items()
    for default in (False, True)
    for locked in (False, True)
}

_GATES = """
    #                                                    binary 31 32 33 34 35 36 37
    APIResponseCompression                               34-37  B  B  B  B  B  B  B
    APIServerIdentity                                    34-37  B  B  B  B  B  B  B
    APIServerTracing                                     34-36  B  B  B  G! G! G! .
    APIServerWebhookAuthenticationToken                  37-37  -  -  -  -  -  -  a
    APIServingWithRoutine                                34-37  a  a  a  a  a  a  a
    AggregatedDiscoveryRemoveBetaType                    34-37  g  g  D  D  D! D! D!
    AllowDNSOnlyNodeCSR                                  34-37  d  d  d  d  d  d  d
    AllowInsecureKubeletCertificateSigningRequests       34-37  d  d  d  d  d  d  d
    AllowOverwriteTerminationGracePeriodSeconds          34-37  G  d  d  d  d! d! d!
    AllowParsingUserUIDFromCertAuth                      34-37  -  -  B  B  B  B  B
    AllowServiceExternalIPs                              36-37  G  G  G  G  G  G  G
    AllowServiceLBStatusOnNonLB                          34-34  d  d! d! d! .  .  .
    AllowUnsafeMalformedObjectDeletion                   34-37  -  a  a  a  a  a  B
    AnonymousAuthConfigurableEndpoints                   34-36  a  B  B  G! G! G! .
    AnyVolumeDataSource                                  34-36  B  B  G! G! G! G! .
    AtomicFIFO                                           36-37  -  -  -  -  -  B  B
    AtomicWriteVolumeUserFields                          37-37  -  -  -  -  -  -  a
    AuthorizeNodeWithSelectors                           34-36  a  B  B  G! G! G! .
    AuthorizePodWebsocketUpgradeCreatePermission         35-37  -  -  -  -  B  B  B
    AuthorizeWithSelectors                               34-36  a  B  B  G! G! G! .
    BtreeWatchCache                                      34-36  -  B  G! G! G! G! .
    CBORServingAndStorage                                34-37  -  a  a  a  a  a  a
    CPUManagerPolicyAlphaOptions                         34-37  a  a  a  a  a  a  a
    CPUManagerPolicyBetaOptions                          34-37  B  B  B  B  B  B  B
    CPUManagerPolicyOptions                              34-37  B  B  G! G! G! G! G!
    CRDObservedGenerationTracking                        35-37  -  -  -  -  b  B  B
    CRDValidationRatcheting                              34-37  B  B  G! G! G! G! G!
    CRIListStreaming                                     36-37  -  -  -  -  -  a  a
    CSIMigrationPortworx                                 34-35  B  B  G! G! G! .  .
    CSIServiceAccountTokenSecrets                        35-37  -  -  -  -  B  G! G!
    CSIVolumeHealth                                      34-37  a  a  a  a  a  a  a
    ChangeContainerStatusOnKubeletRestart                35-37  G  G  G  G  d  d  d
    ClearingNominatedNodeNameAfterBinding                34-37  -  -  -  a  B  B  B
    ClientsAllowCARotation                               36-37  -  -  -  -  -  B  B
    ClientsAllowCBOR                                     34-37  -  a  a  a  a  a  a
    ClientsAllowTLSCacheGC                               36-37  -  -  -  -  -  B  B
    ClientsPreferCBOR                                    34-37  -  a  a  a  a  a  a
    CloudControllerManagerWatchBasedRoutesReconciliation 35-37  -  -  -  -  a  a  a
    CloudControllerManagerWebhook                        34-37  a  a  a  a  a  a  a
    ClusterTrustBundle                                   34-37  a  a  b  b  b  b  G
    ClusterTrustBundleProjection                         34-37  a  a  b  b  b  b  G
    ComponentFlagz                                       34-37  -  a  a  a  a  B  B
    ComponentSLIs                                        34-34  B  G! G! G! .  .  .
    ComponentStatusz                                     34-37  -  a  a  a  a  B  B
    CompositePodGroup                                    37-37  -  -  -  -  -  -  a
    ConcurrentWatchObjectDecode                          34-37  b  b  b  b  b  b  B
    ConsistentListFromCache                              34-36  B  B  B  G! G! G! .
    ConsistentListFromCacheSkipTimeoutFallback           37-37  -  -  -  -  -  -  a
    ConstrainedImpersonation                             35-37  -  -  -  -  a  B  B
    ContainerCheckpoint                                  34-37  B  B  B  B  B  B  B
    ContainerRestartRules                                34-37  -  -  -  a  B  B  B
    ContainerStopSignals                                 34-37  -  -  a  a  a  a  a
    ContextualLogging                                    34-37  B  B  B  B  B  B  B
    ControllerManagerReleaseLeaderElectionLockOnExit     36-37  -  -  -  -  -  a  a
    CoordinatedLeaderElection                            34-37  a  a  b  b  b  b  b
    CronJobsScheduledAnnotation                          34-34  B  G! G! G! .  .  .
    CrossNamespaceVolumeDataSource                       34-37  a  a  a  a  a  a  a
    CustomCPUCFSQuotaPeriod                              34-37  a  a  a  a  a  G  G
    CustomResourceFieldSelectors                         34-37  B  G! G! G! G! G! G!
    DRAAdminAccess                                       34-37  -  a  a  B  B  G! G!
    DRAConsumableCapacity                                34-37  -  -  -  a  a  B  B
    DRADerivedAttributes                                 37-37  -  -  -  -  -  -  a
    DRADeviceBindingConditions                           34-37  -  -  -  a  a  B  B
    DRADeviceCompatibilityGroups                         37-37  -  -  -  -  -  -  a
    DRADeviceTaintRules                                  35-37  -  -  -  -  a  b  G
    DRADeviceTaints                                      34-37  -  -  a  a  a  B  G
    DRAExtendedResource                                  34-37  -  -  -  a  a  B  G!
    DRAFractionalCapacityRange                           37-37  -  -  -  -  -  -  b
    DRAListTypeAttributes                                36-37  -  -  -  -  -  a  a
    DRANodeAllocatableResources                          36-37  -  -  -  -  -  a  a
    DRAOptionalNodeOperations                            37-37  -  -  -  -  -  -  a
    DRAPartitionableDevices                              34-37  -  -  a  a  a  B  B
    DRAPartitionableDevicesType                          37-37  -  -  -  -  -  -  a
    DRAPrioritizedList                                   34-37  -  -  a  B  B  G  G!
    DRAResourceClaimDeviceStatus                         34-37  -  a  B  B  B  B  G!
    DRAResourceClaimGranularStatusAuthorization          36-37  -  -  -  -  -  B  B
    DRAResourcePoolStatus                                36-37  -  -  -  -  -  a  a
    DRASchedulerFilterTimeout                            34-37  -  -  -  B  B  B  B
    DRAWorkloadResourceClaims                            36-37  -  -  -  -  -  a  b
    DeclarativeValidation                                34-37  -  -  B  B  B  G! G!
    DeclarativeValidationBeta                            36-37  -  -  -  -  -  B  B
    DeclarativeValidationTakeover                        34-37  -  -  b  b  b  d  d!
    DefaultPodSysctls                                    37-37  -  -  -  -  -  -  a
    DeploymentReplicaSetTerminatingReplicas              34-37  -  -  a  a  B  B  B
    DetectCacheInconsistency                             34-37  -  -  -  B  B  B  B
    DisableAllocatorDualWrite                            34-37  a  a  b  G  G! G! G!
    DisableCPUQuotaWithExclusiveCPUs                     34-37  -  -  B  B  B  D  D!
    DisableNodeKubeProxyVersion                          34-37  d  d  D  D  D  D! D!
    DynamicResourceAllocation                            34-37  a  b  b  G  G! G! G!
    EmptyDirVolumeMode                                   37-37  -  -  -  -  -  -  a
    EnvFiles                                             34-37  -  -  -  a  B  B  B
    EtcdRangeStream                                      37-37  -  -  -  -  -  -  B
    EventedPLEG                                          34-37  a  a  a  a  a  a  a
    EvictionRequestAPI                                   37-37  -  -  -  -  -  -  a
    ExcludeAdmissionWebhookVirtualResources              37-37  -  -  -  -  -  -  B
    ExecProbeTimeout                                     34-37  G  G  G  G  G! G! G!
    ExtendWebSocketsToKubelet                            36-37  -  -  -  -  -  B  B
    ExternalServiceAccountTokenSigner                    34-37  -  a  a  B  B  G! G!
    GRPCContainerProbeTLS                                37-37  -  -  -  -  -  -  a
    GangScheduling                                       35-36  -  -  -  -  a  a  .
    GenericWorkload                                      35-37  -  -  -  -  a  a  b
    GitRepoVolumeDriver                                  34-37  G  G  d  d  d  d! d!
    GracefulNodeShutdown                                 34-37  B  B  B  B  B  B  B
    GracefulNodeShutdownBasedOnPodPriority               34-37  B  B  B  B  B  B  B
    H2CContainerProbe                                    37-37  -  -  -  -  -  -  a
    HPAConfigurableTolerance                             34-37  -  -  a  a  B  B  G!
    HPAGeneration                                        37-37  -  -  -  -  -  -  B
    HPAOptimizedSelectorStore                            37-37  -  -  -  -  -  -  B
    HPAScaleToZero                                       34-37  a  a  a  a  a  a  B
    HonorPVReclaimPolicy                                 34-35  B  B  G! G! G! .  .
    HostnameOverride                                     34-37  -  -  -  a  B  B  G!
    HugepageAwareEviction                                37-37  -  -  -  -  -  -  B
    ImageMaximumGCAge                                    34-37  B  B  B  B  G! G! G!
    ImageVolume                                          34-37  a  a  b  b  B  G! G!
    ImageVolumeWithDigest                                36-37  -  -  -  -  a  a  a
    InOrderInformers                                     34-37  -  -  B  B  B  G! G!
    InOrderInformersBatchProcess                         35-37  -  -  -  -  B  B  B
    InPlacePodLevelResourcesVerticalScaling              35-37  -  -  -  -  a  B  B
    InPlacePodVerticalScaling                            34-37  a  a  B  B  G! G! G!
    InPlacePodVerticalScalingAllocatedStatus             34-35  -  a  d  d  d  .  .
    InPlacePodVerticalScalingExclusiveCPUs               34-37  -  a  a  a  a  a  a
    InPlacePodVerticalScalingExclusiveMemory             34-37  -  -  -  a  a  a  a
    InPlacePodVerticalScalingInitContainers              36-37  -  -  -  -  -  B  G!
    InPlacePodVerticalScalingMemoryBackedVolumes         37-37  -  -  -  -  -  -  a
    InPlacePodVerticalScalingSchedulerPreemption         37-37  -  -  -  -  -  -  a
    InTreePluginPortworxUnregister                       34-35  a  a  a  a  a  .  .
    InformerResourceVersion                              34-37  a  a  a  a  G  G  G
    InterPodAffinityHostnameFastPath                     37-37  -  -  -  -  -  -  a
    JobBackoffLimitPerIndex                              34-36  B  B  G! G! G! G! .
    JobManagedBy                                         34-37  a  B  B  B  G! G! G!
    JobPodReplacementPolicy                              34-36  B  B  B  G! G! G! .
    JobSuccessPolicy                                     34-36  B  B  G! G! G! G! .
    KMSv1                                                34-37  d  d  d  d  d  d  d
    KubeProxyIPVS                                        37-37  G  G  G  G  G  G  D
    KubeProxyNFTablesLocalhostNodePorts                  37-37  -  -  -  -  -  -  a
    KubeletAllocatedPodsEndpoint                         37-37  -  -  -  -  -  -  a
    KubeletCgroupDriverFromCRI                           34-37  B  B  B  G! G! G! G!
    KubeletCrashLoopBackOffMax                           34-37  -  a  a  a  B  B  B
    KubeletEnsureSecretPulledImages                      34-37  -  -  a  a  B  B  B
    KubeletFineGrainedAuthz                              34-37  -  a  B  B  B  G! G!
    KubeletInUserNamespace                               34-37  a  a  a  a  a  a  B
    KubeletPSI                                           34-37  -  -  a  B  B  G! G!
    KubeletPodResourcesDynamicResources                  34-37  a  a  a  B  B  G! G!
    KubeletPodResourcesGet                               34-37  a  a  a  B  B  G! G!
    KubeletPodResourcesListUseActivePods                 34-37  g  g  g  D  D  D  D
    KubeletRegistrationGetOnExistsOnly                   34-37  G  d  d  d  d  d  d
    KubeletSeparateDiskGC                                34-37  B  B  B  B  B  B  B
    KubeletServiceAccountTokenForCredentialProviders     34-37  -  -  a  B  B  B  B
    KubeletTracing                                       34-37  B  B  B  G! G! G! G!
    ListFromCacheSnapshot                                34-37  -  -  a  B  B  B  B
    LoadBalancerIPMode                                   34-34  B  G! G! G! .  .  .
    LocalStorageCapacityIsolationFSQuotaMonitoring       34-37  b  b  b  b  b  b  b
    LogarithmicScaleDown                                 34-36  G! G! G! G! G! G! .
    LoggingAlphaOptions                                  34-37  a  a  a  a  a  a  a
    LoggingBetaOptions                                   34-37  B  B  B  B  B  B  B
    ManifestBasedAdmissionControlConfig                  36-37  -  -  -  -  -  a  B
    MatchLabelKeysInPodAffinity                          34-37  B  B  G! G! G! G! G!
    MatchLabelKeysInPodTopologySpread                    34-37  B  B  B  B  B  B  B
    MatchLabelKeysInPodTopologySpreadSelectorMerge       34-37  -  -  -  B  B  B  B
    MaxUnavailableStatefulSet                            34-37  a  a  a  a  b  b  B
    MemoryManager                                        34-35  B  G! G! G! G! .  .
    MemoryQoS                                            34-37  a  a  a  a  a  a  B
    MultiCIDRServiceAllocator                            34-37  b  b  G  G! G! G! G!
    MutableCSINodeAllocatableCount                       34-37  -  -  a  b  B  G! G!
    MutablePVNodeAffinity                                35-37  -  -  -  -  a  a  a
    MutablePodResourcesForSuspendedJobs                  35-37  -  -  -  -  a  B  B
    MutableSchedulingDirectivesForSuspendedJobs          35-37  -  -  -  -  a  B  B
    MutatingAdmissionPolicy                              34-37  -  a  a  b  b  G  G
    NFTablesNetlink                                      37-37  -  -  -  -  -  -  B
    NFTablesProxyMode                                    34-37  B  B  G! G! G! G! G!
    NativeHistograms                                     36-37  -  -  -  -  -  a  B
    NodeControllerLeaseCircuitBreaker                    37-37  -  -  -  -  -  -  B
    NodeDeclaredFeatures                                 35-37  -  -  -  -  a  B  G!
    NodeInclusionPolicyInPodTopologySpread               34-37  B  B  G! G! G! G! G!
    NodeLifecycleConditions                              37-37  -  -  -  -  -  -  a
    NodeLogQuery                                         34-37  b  b  b  b  b  G! G!
    NodeSwap                                             34-37  B  B  B  G! G! G! G!
    NominatedNodeNameForExpectation                      34-37  -  -  -  a  B  B  B
    OpenAPIEnums                                         34-37  B  B  B  B  B  B  B
    OpportunisticBatching                                35-37  -  -  -  -  B  B  B
    OrderedNamespaceDeletion                             34-36  b  b  B  G! G! G! .
    PLEGOnDemandRelist                                   36-37  -  -  -  -  -  B  G!
    PersistentVolumeClaimUnusedSinceTime                 36-37  -  -  -  -  -  a  B
    PodAndContainerStatsFromCRI                          34-37  a  a  a  a  a  a  b
    PodCertificateRequest                                34-37  -  -  -  a  b  b  G
    PodDeletionCost                                      34-37  B  B  B  B  B  B  B
    PodGroupPreemptionPolicy                             37-37  -  -  -  -  -  -  a
    PodIndexLabel                                        34-34  B  G! G! G! .  .  .
    PodLevelResourceManagers                             36-37  -  -  -  -  -  a  b
    PodLevelResources                                    34-37  -  a  a  B  B  B  B
    PodLevelResourcesFixDefaulting                       37-37  -  -  -  -  -  -  B
    PodLevelResourcesFixKubeletQOSClass                  37-37  -  -  -  -  -  -  B
    PodLifecycleSleepAction                              34-36  B  B  B  G! G! G! .
    PodLifecycleSleepActionAllowZero                     34-36  -  a  B  G! G! G! .
    PodLogsQuerySplitStreams                             34-37  -  a  a  a  a  a  a
    PodObservedGenerationTracking                        34-37  -  -  a  B  G! G! G!
    PodReadyToStartContainersCondition                   34-37  B  B  B  B  B  B  G!
    PodSchedulingReadiness                               34-37  G! G! G! G! G! G! G!
    PodTopologyLabelsAdmission                           34-37  -  -  a  a  B  B  B
    PodsAPI                                              36-37  -  -  -  -  -  a  B
    PortForwardWebsockets                                34-37  B  B  B  B  B  B  B
    PreferSameTrafficDistribution                        34-37  -  -  a  B  G! G! G!
    PreventStaticPodAPIReferences                        34-36  -  -  -  B  B  B  .
    ProbeHostPodSecurityStandards                        34-34  -  -  -  G! .  .  .
    ProcMountType                                        34-37  b  b  B  B  B  G! G!
    QOSReserved                                          34-37  a  a  a  a  a  a  a
    RecoverVolumeExpansionFailure                        34-37  a  B  B  G! G! G! G!
    RecursiveReadOnlyMounts                              34-37  B  B  G! G! G! G! G!
    ReduceDefaultCrashLoopBackOffDecay                   34-37  -  -  a  a  a  a  a
    RelaxedDNSSearchValidation                           34-36  -  a  B  G! G! G! .
    RelaxedEnvironmentVariableValidation                 34-37  a  B  B  G! G! G! G!
    RelaxedServiceNameValidation                         34-37  -  -  -  a  a  B  G!
    ReloadKubeletClientCAFile                            36-37  -  -  -  -  -  B  B
    ReloadKubeletServerCertificateFile                   34-37  B  B  B  B  B  B  B
    RemoteRequestHeaderUID                               34-37  -  a  B  B  B  B  B
    ResilientWatchCacheInitialization                    34-36  B  B  B  G! G! G! .
    ResourceHealthStatus                                 34-37  a  a  a  a  a  B  B
    ResourceHealthStatusMessage                          36-37  -  -  -  -  -  B  B
    RestartAllContainersOnContainerExits                 35-37  -  -  -  -  a  B  B
    RetryGenerateName                                    34-36  B  G! G! G! G! G! .
    RotateKubeletServerCertificate                       34-37  B  B  B  B  B  B  B
    RuntimeClassInImageCriApi                            34-37  a  a  a  a  a  a  a
    SELinuxChangePolicy                                  34-37  -  a  B  B  B  G! G!
    SELinuxMount                                         34-37  a  a  b  b  b  b  G
    SELinuxMountReadWriteOncePod                         34-37  B  B  B  B  B  G! G!
    SchedulerAsyncAPICalls                               34-37  -  -  -  b  b  b  b
    SchedulerAsyncPreemption                             34-37  -  a  B  B  B  B  B
    SchedulerPopFromBackoffQ                             34-37  -  -  B  B  B  B  B
    SchedulerPreQueueingHints                            37-37  -  -  -  -  -  -  a
    SchedulerQueueingHints                               34-36  b  B  B  G! G! G! .
    SeparateCacheWatchRPC                                34-37  B  B  d  d  d  d! d!
    SeparateTaintEvictionController                      34-37  B  B  B  G! G! G! G!
    ServiceAccountNodeAudienceRestriction                34-37  -  b  B  B  B  B  B
    ServiceAccountTokenJTI                               34-37  B  G! G! G! G! G! G!
    ServiceAccountTokenNodeBinding                       34-37  B  B  G! G! G! G! G!
    ServiceAccountTokenNodeBindingValidation             34-37  B  G! G! G! G! G! G!
    ServiceAccountTokenPodNodeInfo                       34-37  B  G! G! G! G! G! G!
    ServiceCIDRStatusFieldWiping                         36-37  g  g  g  g  g  D  D
    ServiceTrafficDistribution                           34-35  B  B  G! G! G! .  .
    ShardedListAndWatch                                  36-37  -  -  -  -  -  a  a
    SidecarContainers                                    34-36  B  B  G! G! G! G! .
    SizeBasedListCostEstimate                            34-37  -  -  -  B  B  B  B
    SizeMemoryBackedVolumes                              34-34  B  G! G! G! .  .  .
    StaleControllerConsistencyDaemonSet                  36-37  -  -  -  -  -  B  B
    StaleControllerConsistencyHPA                        37-37  -  -  -  -  -  -  B
    StaleControllerConsistencyJob                        36-37  -  -  -  -  -  B  B
    StaleControllerConsistencyReplicaSet                 36-37  -  -  -  -  -  B  B
    StaleControllerConsistencyStatefulSet                36-37  -  -  -  -  -  B  B
    StatefulSetAutoDeletePVC                             34-34  B  G! G! G! .  .  .
    StatefulSetRecreateStrategy                          37-37  -  -  -  -  -  -  a
    StatefulSetSemanticRevisionComparison                34-37  B  B  B  B  B  B  B
    StorageCapacityScoring                               34-37  -  -  a  a  a  a  B
    StorageNamespaceIndex                                34-37  B  B  D  D  D  D  D
    StorageVersionAPI                                    34-37  a  a  a  a  a  a  a
    StorageVersionHash                                   34-37  B  B  B  B  B  B  B
    StorageVersionMigrator                               34-37  a  a  a  a  b  b  G
    StreamingCollectionEncodingToJSON                    34-36  -  -  B  G! G! G! .
    StreamingCollectionEncodingToProtobuf                34-36  -  -  B  G! G! G! .
    StrictCostEnforcementForVAP                          34-34  b  G! G! G! .  .  .
    StrictCostEnforcementForWebhooks                     34-34  b  G! G! G! .  .  .
    StrictIPCIDRValidation                               34-37  -  -  a  a  a  B  B
    StructuredAuthenticationConfiguration                34-36  B  B  B  G! G! G! .
    StructuredAuthenticationConfigurationEgressSelector  34-37  -  -  -  B  B  B  B
    StructuredAuthenticationConfigurationJWKSMetrics     35-37  -  -  -  -  B  B  B
    StructuredAuthorizationConfiguration                 34-35  B  G! G! G! G! .  .
    SupplementalGroupsPolicy                             34-37  a  a  B  B  G! G! G!
    SystemdWatchdog                                      34-37  -  B  B  B  G! G! G!
    TaintTolerationComparisonOperators                   35-37  -  -  -  -  a  a  a
    TokenRequestServiceAccountUIDValidation              34-37  -  -  -  B  B  B  B
    TopologyAwareHints                                   34-35  B  B  G! G! G! .  .
    TopologyAwareWorkloadScheduling                      36-37  -  -  -  -  -  a  a
    TopologyManagerPolicyAlphaOptions                    34-37  a  a  a  a  a  a  a
    TopologyManagerPolicyBetaOptions                     34-37  B  B  B  B  B  B  B
    TopologyManagerPolicyOptions                         34-37  B  G! G! G  G  G! G!
    TranslateStreamCloseWebsocketRequests                34-37  B  B  B  B  B  B  B
    UnauthenticatedHTTP2DOSMitigation                    34-37  B  B  B  B  B  B  B
    UnknownVersionInteroperabilityProxy                  34-37  a  a  a  a  a  B  B
    UnlockWhileProcessingFIFO                            36-37  -  -  -  -  -  B  B
    UserNamespacesHostNetworkSupport                     35-37  -  -  -  -  a  a  a
    UserNamespacesPodSecurityStandards                   34-34  a  a  a  a  .  .  .
    UserNamespacesSupport                                34-37  b  b  B  B  B  G! G!
    VolumeAttributesClass                                34-37  b  b  b  G  G  G! G!
    VolumeBindMountOptions                               37-37  -  -  -  -  -  -  a
    VolumeLimitScaling                                   35-37  -  -  -  -  a  a  B
    WatchCacheInitializationPostStartHook                34-37  b  b  b  b  b  B  G!
    WatchFromStorageWithoutResourceVersion               34-35  b  b  d! d! d! .  .
    WatchList                                            34-37  a  B  b  B  B  B  B
    WatchListClient                                      34-37  b  b  b  b  B  B  B
    WatchListCompression                                 37-37  -  -  -  -  -  -  B
    WebhookRoundTripLoadBalancing                        37-37  -  -  -  -  -  -  B
    WinDSR                                               34-37  a  a  B  G! G! G! G!
    WinOverlay                                           34-37  B  B  B  G! G! G! G!
    WindowsCPUAndMemoryAffinity                          34-37  -  a  a  a  a  a  a
    WindowsGracefulNodeShutdown                          34-37  -  a  a  B  B  B  B
    WindowsHostNetwork                                   34-37  a  a  d  d  d  d  d
    WorkloadAwarePreemption                              36-36  -  -  -  -  -  a  .
    WorkloadWithJob                                      36-37  -  -  -  -  -  a  a
"""
# One row a gate: the binaries of 1.34 to 1.37 that have the gate, then its spec in each version from 1.31 to 1.37.
# a, b, g, d: alpha, beta, GA, deprecated and disabled by default; capital letters: enabled by default; !: locked.
# "-": not yet introduced; ".": removed, the behaviour stays as before.

_NEEDS_MIN_COMPATIBILITY = {"DRAFractionalCapacityRange": (37, Spec(BETA, True))}
"""gate -> (minor version, spec from that minimum compatibility version on)"""

_NOT_IMPLEMENTED = frozenset({"UnknownVersionInteroperabilityProxy"})
"""Gates that are shown as disabled and cannot be enabled: this server proxies no request to peers."""

_DEPENDENCIES = """
    AuthorizeNodeWithSelectors 35-36 AuthorizeWithSelectors
    ClusterTrustBundleProjection 35-37 ClusterTrustBundle
    CompositePodGroup 37-37 GenericWorkload TopologyAwareWorkloadScheduling
    DRAAdminAccess 35-37 DynamicResourceAllocation
    DRAConsumableCapacity 35-37 DynamicResourceAllocation
    DRADerivedAttributes 37-37 DynamicResourceAllocation
    DRADeviceBindingConditions 35-37 DynamicResourceAllocation DRAResourceClaimDeviceStatus
    DRADeviceCompatibilityGroups 37-37 DynamicResourceAllocation DRAPartitionableDevices
    DRADeviceTaintRules 35-37 DRADeviceTaints
    DRADeviceTaints 35-37 DynamicResourceAllocation
    DRAExtendedResource 35-37 DynamicResourceAllocation
    DRAFractionalCapacityRange 37-37 DRAConsumableCapacity
    DRAListTypeAttributes 36-37 DynamicResourceAllocation
    DRANodeAllocatableResources 36-37 DynamicResourceAllocation
    DRAOptionalNodeOperations 37-37 DynamicResourceAllocation NodeDeclaredFeatures
    DRAPartitionableDevices 35-37 DynamicResourceAllocation
    DRAPartitionableDevicesType 37-37 DynamicResourceAllocation DRAPartitionableDevices DRAResourcePoolStatus
    DRAPrioritizedList 35-37 DynamicResourceAllocation
    DRAResourceClaimGranularStatusAuthorization 36-37 DynamicResourceAllocation DRAResourceClaimDeviceStatus
    DRAResourcePoolStatus 36-37 DynamicResourceAllocation
    DRASchedulerFilterTimeout 35-37 DynamicResourceAllocation
    DRAWorkloadResourceClaims 36-37 DynamicResourceAllocation GenericWorkload
    DeclarativeValidationBeta 36-37 DeclarativeValidation
    DeclarativeValidationTakeover 35-37 DeclarativeValidation
    DisableAllocatorDualWrite 35-36 MultiCIDRServiceAllocator
    EventedPLEG 37-37 PLEGOnDemandRelist
    ExtendWebSocketsToKubelet 36-37 NodeDeclaredFeatures
    GangScheduling 35-36 GenericWorkload
    GracefulNodeShutdownBasedOnPodPriority 35-37 GracefulNodeShutdown
    H2CContainerProbe 37-37 NodeDeclaredFeatures
    ImageVolumeWithDigest 36-37 ImageVolume
    InPlacePodLevelResourcesVerticalScaling 35-37 InPlacePodVerticalScaling PodLevelResources NodeDeclaredFeatures
    InPlacePodVerticalScalingAllocatedStatus 35-35 InPlacePodVerticalScaling
    InPlacePodVerticalScalingExclusiveCPUs 35-37 InPlacePodVerticalScaling
    InPlacePodVerticalScalingExclusiveMemory 35-37 InPlacePodVerticalScaling
    InPlacePodVerticalScalingInitContainers 36-37 InPlacePodVerticalScaling NodeDeclaredFeatures
    InPlacePodVerticalScalingMemoryBackedVolumes 37-37 InPlacePodVerticalScaling NodeDeclaredFeatures
    InPlacePodVerticalScalingSchedulerPreemption 37-37 InPlacePodVerticalScaling
    KubeletAllocatedPodsEndpoint 37-37 InPlacePodVerticalScaling
    MatchLabelKeysInPodTopologySpreadSelectorMerge 35-37 MatchLabelKeysInPodTopologySpread
    NodeControllerLeaseCircuitBreaker 37-37 AtomicFIFO
    PodCertificateRequest 35-36 AuthorizeNodeWithSelectors
    PodGroupPreemptionPolicy 37-37 GenericWorkload
    PodLevelResourceManagers 36-37 PodLevelResources
    PodLevelResourcesFixDefaulting 37-37 PodLevelResources
    PodLevelResourcesFixKubeletQOSClass 37-37 PodLevelResources
    PodLifecycleSleepActionAllowZero 35-36 PodLifecycleSleepAction
    ProcMountType 35-37 UserNamespacesSupport
    ResourceHealthStatus 35-37 DynamicResourceAllocation
    ResourceHealthStatusMessage 36-37 ResourceHealthStatus
    RestartAllContainersOnContainerExits 35-37 ContainerRestartRules NodeDeclaredFeatures
    StaleControllerConsistencyDaemonSet 36-37 AtomicFIFO
    StaleControllerConsistencyHPA 37-37 AtomicFIFO
    StaleControllerConsistencyJob 36-37 AtomicFIFO
    StaleControllerConsistencyReplicaSet 36-37 AtomicFIFO
    StaleControllerConsistencyStatefulSet 36-37 AtomicFIFO
    StorageVersionAPI 35-37 APIServerIdentity
    StructuredAuthenticationConfigurationEgressSelector 35-36 StructuredAuthenticationConfiguration
    StructuredAuthenticationConfigurationJWKSMetrics 35-36 StructuredAuthenticationConfiguration
    TopologyAwareWorkloadScheduling 36-37 GenericWorkload
    UnknownVersionInteroperabilityProxy 35-37 APIServerIdentity
    UserNamespacesHostNetworkSupport 35-35 UserNamespacesSupport
    UserNamespacesHostNetworkSupport 36-37 UserNamespacesSupport NodeDeclaredFeatures
    WindowsGracefulNodeShutdown 35-37 GracefulNodeShutdown
    WorkloadAwarePreemption 36-36 GangScheduling
    WorkloadWithJob 36-37 GenericWorkload
"""
# One row a gate: the binaries with the dependency, then the required gates, except gates that are always enabled.


@dataclass(frozen=True, slots=True)
class KnownGates:
    """The gates of one binary at one emulated version."""

    specs: dict[str, Spec]
    """gate -> spec; gates that the emulated version does not have yet have the stage PRE-ALPHA"""
    implied: dict[str, bool]
    """gate of other versions -> whether this version behaves as if the gate were enabled"""
    dependencies: dict[str, list[str]]


@cache  # at most one entry for each pair of versions of a process
def known_gates(binary: int, emulated: int, min_compatibility: int) -> KnownGates:
    """Return the gates of a binary, by minor versions."""
    specs = {ALL_ALPHA: Spec(ALPHA, False), ALL_BETA: Spec(BETA, False)}
    implied: dict[str, bool] = {}
    column = max(emulated - _FIRST_COLUMN, 0)
    for name, binaries, codes in _rows(_GATES):
        code = codes[column]
        if code == _REMOVED:
            code = next(code for code in reversed(codes) if code != _REMOVED)
        spec = _SPECS[code]
        if int(binaries[:2]) <= binary <= int(binaries[-2:]):
            specs[name] = spec
        else:
            implied[name] = spec.default
    for name, (minor, spec) in _NEEDS_MIN_COMPATIBILITY.items():
        if name in specs and emulated >= minor and min_compatibility >= minor:
            specs[name] = spec
    for name in _NOT_IMPLEMENTED & specs.keys():
        specs[name] = Spec(specs[name].stage, False, locked=True)
    needed = {
        name: names
        for name, binaries, names in _rows(_DEPENDENCIES)
        if int(binaries[:2]) <= binary <= int(binaries[-2:])
    }
    return KnownGates(specs, implied, needed)


def all_gates() -> set[str]:
    """Return the names of the gates of all versions."""
    return {ALL_ALPHA, ALL_BETA, *(name for name, _, _ in _rows(_GATES))}


def _rows(table: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (name, binaries, other words). Lines that begin with # are headings."""
    for line in table.splitlines():
        words = line.split()
        if words and words[0] != "#":
            yield words[0], words[1], words[2:]
