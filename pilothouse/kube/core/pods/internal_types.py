"""Upstream's internal types of pods and volumes: the fields of each type, in order.

Some error messages print internal types.

    Name:kind         name of the field in the type; the JSON name has a lowercase first letter
    Name=json:kind    a different JSON name
    +Type             embeds the fields of another type

kinds: s string, i integer, b boolean, q quantity, l label selector, the name of a type (* pointer, [] list), empty for
values that print as in JSON.
"""

from __future__ import annotations

TYPES: dict[str, str] = {
    "AWSElasticBlockStoreVolumeSource": "VolumeID:s FSType=fsType:s Partition:i ReadOnly:b",
    "Affinity": "NodeAffinity:*NodeAffinity PodAffinity:*PodAffinity PodAntiAffinity:*PodAntiAffinity",
    "AppArmorProfile": "Type:s LocalhostProfile",
    "AzureDiskVolumeSource": "DiskName:s DataDiskURI=diskURI:s CachingMode FSType=fsType ReadOnly Kind",
    "AzureFileVolumeSource": "SecretName:s ShareName:s ReadOnly:b",
    "CSIVolumeSource": "Driver:s ReadOnly FSType=fsType VolumeAttributes NodePublishSecretRef:*LocalObjectReference",
    "Capabilities": "Add Drop",
    "CephFSVolumeSource": "Monitors Path:s User:s SecretFile:s SecretRef:*LocalObjectReference ReadOnly:b",
    "CinderVolumeSource": "VolumeID:s FSType=fsType:s ReadOnly:b SecretRef:*LocalObjectReference",
    "ClusterTrustBundleProjection": "Name SignerName LabelSelector:l Optional Path:s",
    "ConfigMapEnvSource": "+LocalObjectReference Optional",
    "ConfigMapKeySelector": "+LocalObjectReference Key:s Optional",
    "ConfigMapProjection": "+LocalObjectReference Items:[]KeyToPath Optional",
    "ConfigMapVolumeSource": "+LocalObjectReference Items:[]KeyToPath DefaultMode Optional",
    "Container": (
        "Name:s Image:s Command Args WorkingDir:s Ports:[]ContainerPort EnvFrom:[]EnvFromSource Env:[]EnvVar "
        "Resources:ResourceRequirements ResizePolicy:[]ContainerResizePolicy RestartPolicy "
        "RestartPolicyRules:[]ContainerRestartRule VolumeMounts:[]VolumeMount VolumeDevices:[]VolumeDevice "
        "LivenessProbe:*Probe ReadinessProbe:*Probe StartupProbe:*Probe Lifecycle:*Lifecycle TerminationMessagePath:s "
        "TerminationMessagePolicy:s ImagePullPolicy:s SecurityContext:*SecurityContext Stdin:b StdinOnce:b TTY=tty:b"
    ),
    "ContainerPort": "Name:s HostPort:i ContainerPort:i Protocol:s HostIP:s",
    "ContainerResizePolicy": "ResourceName:s RestartPolicy:s",
    "ContainerRestartRule": "Action:s ExitCodes:*ContainerRestartRuleOnExitCodes",
    "ContainerRestartRuleOnExitCodes": "Operator:s Values",
    "DownwardAPIProjection": "Items:[]DownwardAPIVolumeFile",
    "DownwardAPIVolumeFile": "Path:s FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector Mode",
    "DownwardAPIVolumeSource": "Items:[]DownwardAPIVolumeFile DefaultMode",
    "EmptyDirVolumeSource": "Medium:s SizeLimit",
    "EnvFromSource": "Prefix:s ConfigMapRef:*ConfigMapEnvSource SecretRef:*SecretEnvSource",
    "EnvVar": "Name:s Value:s ValueFrom:*EnvVarSource",
    "EnvVarSource": (
        "FieldRef:*ObjectFieldSelector ResourceFieldRef:*ResourceFieldSelector ConfigMapKeyRef:*ConfigMapKeySelector "
        "SecretKeyRef:*SecretKeySelector FileKeyRef:*FileKeySelector"
    ),
    "EphemeralContainer": "+Container TargetContainerName:s",
    "EphemeralVolumeSource": "VolumeClaimTemplate:*PersistentVolumeClaimTemplate",
    "ExecAction": "Command",
    "FCVolumeSource": "TargetWWNs Lun FSType=fsType:s ReadOnly:b WWIDs=wwids",
    "FileKeySelector": "VolumeName:s Path:s Key:s Optional",
    "FlexVolumeSource": "Driver:s FSType=fsType:s SecretRef:*LocalObjectReference ReadOnly:b Options",
    "FlockerVolumeSource": "DatasetName:s DatasetUUID:s",
    "GCEPersistentDiskVolumeSource": "PDName=pdName:s FSType=fsType:s Partition:i ReadOnly:b",
    "GRPCAction": "Port:i Service",
    "GitRepoVolumeSource": "Repository:s Revision:s Directory:s",
    "GlusterfsVolumeSource": "EndpointsName=endpoints:s Path:s ReadOnly:b",
    "HTTPGetAction": "Path:s Port:i Host:s Scheme:s HTTPHeaders=httpHeaders:[]HTTPHeader",
    "HTTPHeader": "Name:s Value:s",
    "HostAlias": "IP=ip:s Hostnames",
    "HostPathVolumeSource": "Path:s Type",
    "ISCSIVolumeSource": (
        "TargetPortal:s IQN=iqn:s Lun:i ISCSIInterface=iscsiInterface:s FSType=fsType:s ReadOnly:b Portals "
        "DiscoveryCHAPAuth=chapAuthDiscovery:b SessionCHAPAuth=chapAuthSession:b SecretRef:*LocalObjectReference "
        "InitiatorName"
    ),
    "ImageVolumeSource": "Reference:s PullPolicy:s",
    "KeyToPath": "Key:s Path:s Mode",
    "Lifecycle": "PostStart:*LifecycleHandler PreStop:*LifecycleHandler StopSignal",
    "LifecycleHandler": (
        "Exec:*ExecAction HTTPGet=httpGet:*HTTPGetAction TCPSocket=tcpSocket:*TCPSocketAction Sleep:*SleepAction"
    ),
    "LocalObjectReference": "Name:s",
    "NFSVolumeSource": "Server:s Path:s ReadOnly:b",
    "NodeAffinity": (
        "RequiredDuringSchedulingIgnoredDuringExecution:*NodeSelector "
        "PreferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm"
    ),
    "NodeSelector": "NodeSelectorTerms:[]NodeSelectorTerm",
    "NodeSelectorRequirement": "Key:s Operator:s Values",
    "NodeSelectorTerm": "MatchExpressions:[]NodeSelectorRequirement MatchFields:[]NodeSelectorRequirement",
    "ObjectFieldSelector": "APIVersion=apiVersion:s FieldPath:s",
    "PersistentVolumeClaimSpec": (
        "AccessModes Selector:l Resources:VolumeResourceRequirements VolumeName:s StorageClassName VolumeMode "
        "DataSource:*TypedLocalObjectReference DataSourceRef:*TypedObjectReference VolumeAttributesClassName"
    ),
    "PersistentVolumeClaimTemplate": "Spec:PersistentVolumeClaimSpec",
    "PersistentVolumeClaimVolumeSource": "ClaimName:s ReadOnly:b",
    "PhotonPersistentDiskVolumeSource": "PdID:s FSType=fsType:s",
    "PodAffinity": (
        "RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm "
        "PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm"
    ),
    "PodAffinityTerm": "LabelSelector:l Namespaces TopologyKey:s NamespaceSelector:l MatchLabelKeys MismatchLabelKeys",
    "PodAntiAffinity": (
        "RequiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm "
        "PreferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm"
    ),
    "PodCertificateProjection": (
        "SignerName:s KeyType:s MaxExpirationSeconds CredentialBundlePath:s KeyPath:s CertificateChainPath:s "
        "UserAnnotations"
    ),
    "PodDNSConfig": "Nameservers Searches Options:[]PodDNSConfigOption",
    "PodDNSConfigOption": "Name:s Value",
    "PodOS": "Name:s",
    "PodReadinessGate": "ConditionType:s",
    "PodResourceClaim": "Name:s ResourceClaimName ResourceClaimTemplateName",
    "PodSchedulingGate": "Name:s",
    "PodSchedulingGroup": "PodGroupName",
    "PodSecurityContext": (
        "HostNetwork:b HostPID:b HostIPC:b ShareProcessNamespace HostUsers "
        "SELinuxOptions=seLinuxOptions:*SELinuxOptions WindowsOptions:*WindowsSecurityContextOptions RunAsUser "
        "RunAsGroup RunAsNonRoot SupplementalGroups SupplementalGroupsPolicy FSGroup=fsGroup "
        "FSGroupChangePolicy=fsGroupChangePolicy Sysctls:[]Sysctl SeccompProfile:*SeccompProfile "
        "AppArmorProfile:*AppArmorProfile SELinuxChangePolicy=seLinuxChangePolicy"
    ),
    "PodSpec": (
        "Volumes:[]Volume InitContainers:[]Container Containers:[]Container EphemeralContainers:[]EphemeralContainer "
        "RestartPolicy:s TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy=dnsPolicy:s NodeSelector "
        "ServiceAccountName:s AutomountServiceAccountToken NodeName:s SecurityContext:*PodSecurityContext "
        "ImagePullSecrets:[]LocalObjectReference Hostname:s Subdomain:s SetHostnameAsFQDN Affinity:*Affinity "
        "SchedulerName:s Tolerations:[]Toleration HostAliases:[]HostAlias PriorityClassName:s Priority "
        "PreemptionPolicy DNSConfig=dnsConfig:*PodDNSConfig ReadinessGates:[]PodReadinessGate RuntimeClassName "
        "Overhead EnableServiceLinks TopologySpreadConstraints:[]TopologySpreadConstraint OS=os:*PodOS "
        "SchedulingGates:[]PodSchedulingGate ResourceClaims:[]PodResourceClaim Resources:*ResourceRequirements "
        "HostnameOverride SchedulingGroup:*PodSchedulingGroup"
    ),
    "PortworxVolumeSource": "VolumeID:s FSType=fsType:s ReadOnly:b",
    "PreferredSchedulingTerm": "Weight:i Preference:NodeSelectorTerm",
    "Probe": (
        "+ProbeHandler InitialDelaySeconds:i TimeoutSeconds:i PeriodSeconds:i SuccessThreshold:i FailureThreshold:i "
        "TerminationGracePeriodSeconds"
    ),
    "ProbeHandler": (
        "Exec:*ExecAction HTTPGet=httpGet:*HTTPGetAction TCPSocket=tcpSocket:*TCPSocketAction GRPC=grpc:*GRPCAction"
    ),
    "ProjectedVolumeSource": "Sources:[]VolumeProjection DefaultMode",
    "QuobyteVolumeSource": "Registry:s Volume:s ReadOnly:b User:s Group:s Tenant:s",
    "RBDVolumeSource": (
        "CephMonitors=monitors RBDImage=image:s FSType=fsType:s RBDPool=pool:s RadosUser=user:s Keyring:s "
        "SecretRef:*LocalObjectReference ReadOnly:b"
    ),
    "ResourceClaim": "Name:s Request:s",
    "ResourceFieldSelector": "ContainerName:s Resource:s Divisor:q",
    "ResourceRequirements": "Limits Requests Claims:[]ResourceClaim",
    "SELinuxOptions": "User:s Role:s Type:s Level:s",
    "ScaleIOVolumeSource": (
        "Gateway:s System:s SecretRef:*LocalObjectReference SSLEnabled=sslEnabled:b ProtectionDomain:s StoragePool:s "
        "StorageMode:s VolumeName:s FSType=fsType:s ReadOnly:b"
    ),
    "SeccompProfile": "Type:s LocalhostProfile",
    "SecretEnvSource": "+LocalObjectReference Optional",
    "SecretKeySelector": "+LocalObjectReference Key:s Optional",
    "SecretProjection": "+LocalObjectReference Items:[]KeyToPath Optional",
    "SecretVolumeSource": "SecretName:s Items:[]KeyToPath DefaultMode Optional",
    "SecurityContext": (
        "Capabilities:*Capabilities Privileged SELinuxOptions=seLinuxOptions:*SELinuxOptions "
        "WindowsOptions:*WindowsSecurityContextOptions RunAsUser RunAsGroup RunAsNonRoot ReadOnlyRootFilesystem "
        "AllowPrivilegeEscalation ProcMount SeccompProfile:*SeccompProfile AppArmorProfile:*AppArmorProfile"
    ),
    "ServiceAccountTokenProjection": "Audience:s ExpirationSeconds:i Path:s",
    "SleepAction": "Seconds:i",
    "StorageOSVolumeSource": (
        "VolumeName:s VolumeNamespace:s FSType=fsType:s ReadOnly:b SecretRef:*LocalObjectReference"
    ),
    "Sysctl": "Name:s Value:s",
    "TCPSocketAction": "Port:i Host:s",
    "Toleration": "Key:s Operator:s Value:s Effect:s TolerationSeconds",
    "TopologySpreadConstraint": (
        "MaxSkew:i TopologyKey:s WhenUnsatisfiable:s LabelSelector:l MinDomains NodeAffinityPolicy NodeTaintsPolicy "
        "MatchLabelKeys"
    ),
    "TypedLocalObjectReference": "APIGroup=apiGroup Kind:s Name:s",
    "TypedObjectReference": "APIGroup=apiGroup Kind:s Name:s Namespace",
    "Volume": "Name:s +VolumeSource",
    "VolumeDevice": "Name:s DevicePath:s",
    "VolumeMount": "Name:s ReadOnly:b RecursiveReadOnly MountPath:s SubPath:s MountPropagation SubPathExpr:s",
    "VolumeProjection": (
        "Secret:*SecretProjection DownwardAPI:*DownwardAPIProjection ConfigMap:*ConfigMapProjection "
        "ServiceAccountToken:*ServiceAccountTokenProjection ClusterTrustBundle:*ClusterTrustBundleProjection "
        "PodCertificate:*PodCertificateProjection"
    ),
    "VolumeResourceRequirements": "Limits Requests",
    "VolumeSource": (
        "HostPath:*HostPathVolumeSource EmptyDir:*EmptyDirVolumeSource "
        "GCEPersistentDisk=gcePersistentDisk:*GCEPersistentDiskVolumeSource "
        "AWSElasticBlockStore=awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource GitRepo:*GitRepoVolumeSource "
        "Secret:*SecretVolumeSource NFS=nfs:*NFSVolumeSource ISCSI=iscsi:*ISCSIVolumeSource "
        "Glusterfs:*GlusterfsVolumeSource PersistentVolumeClaim:*PersistentVolumeClaimVolumeSource "
        "RBD=rbd:*RBDVolumeSource Quobyte:*QuobyteVolumeSource FlexVolume:*FlexVolumeSource "
        "Cinder:*CinderVolumeSource CephFS=cephfs:*CephFSVolumeSource Flocker:*FlockerVolumeSource "
        "DownwardAPI:*DownwardAPIVolumeSource FC=fc:*FCVolumeSource AzureFile:*AzureFileVolumeSource "
        "ConfigMap:*ConfigMapVolumeSource VsphereVolume:*VsphereVirtualDiskVolumeSource "
        "AzureDisk:*AzureDiskVolumeSource PhotonPersistentDisk:*PhotonPersistentDiskVolumeSource "
        "Projected:*ProjectedVolumeSource PortworxVolume:*PortworxVolumeSource ScaleIO:*ScaleIOVolumeSource "
        "StorageOS=storageos:*StorageOSVolumeSource CSI=csi:*CSIVolumeSource Ephemeral:*EphemeralVolumeSource "
        "Image:*ImageVolumeSource"
    ),
    "VsphereVirtualDiskVolumeSource": "VolumePath:s FSType=fsType:s StoragePolicyName:s StoragePolicyID:s",
    "WeightedPodAffinityTerm": "Weight:i PodAffinityTerm:PodAffinityTerm",
    "WindowsSecurityContextOptions": (
        "GMSACredentialSpecName=gmsaCredentialSpecName GMSACredentialSpec=gmsaCredentialSpec RunAsUserName HostProcess"
    ),
    "PersistentVolumeSpec": (
        "Capacity +PersistentVolumeSource AccessModes ClaimRef:*ObjectReference PersistentVolumeReclaimPolicy:s "
        "StorageClassName:s MountOptions VolumeMode NodeAffinity:*VolumeNodeAffinity VolumeAttributesClassName"
    ),
    "PersistentVolumeSource": (
        "GCEPersistentDisk=gcePersistentDisk:*GCEPersistentDiskVolumeSource "
        "AWSElasticBlockStore=awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource HostPath:*HostPathVolumeSource "
        "Glusterfs:*GlusterfsPersistentVolumeSource NFS=nfs:*NFSVolumeSource RBD=rbd:*RBDPersistentVolumeSource "
        "Quobyte:*QuobyteVolumeSource ISCSI=iscsi:*ISCSIPersistentVolumeSource FlexVolume:*FlexPersistentVolumeSource "
        "Cinder:*CinderPersistentVolumeSource CephFS=cephfs:*CephFSPersistentVolumeSource FC=fc:*FCVolumeSource "
        "Flocker:*FlockerVolumeSource AzureFile:*AzureFilePersistentVolumeSource "
        "VsphereVolume:*VsphereVirtualDiskVolumeSource AzureDisk:*AzureDiskVolumeSource "
        "PhotonPersistentDisk:*PhotonPersistentDiskVolumeSource PortworxVolume:*PortworxVolumeSource "
        "ScaleIO:*ScaleIOPersistentVolumeSource Local:*LocalVolumeSource "
        "StorageOS=storageos:*StorageOSPersistentVolumeSource CSI=csi:*CSIPersistentVolumeSource"
    ),
    "GlusterfsPersistentVolumeSource": "EndpointsName=endpoints:s Path:s ReadOnly:b EndpointsNamespace",
    "RBDPersistentVolumeSource": (
        "CephMonitors=monitors RBDImage=image:s FSType=fsType:s RBDPool=pool:s RadosUser=user:s Keyring:s "
        "SecretRef:*SecretReference ReadOnly:b"
    ),
    "CephFSPersistentVolumeSource": "Monitors Path:s User:s SecretFile:s SecretRef:*SecretReference ReadOnly:b",
    "ISCSIPersistentVolumeSource": (
        "TargetPortal:s IQN=iqn:s Lun:i ISCSIInterface=iscsiInterface:s FSType=fsType:s ReadOnly:b Portals "
        "DiscoveryCHAPAuth=chapAuthDiscovery:b SessionCHAPAuth=chapAuthSession:b SecretRef:*SecretReference "
        "InitiatorName"
    ),
    "CinderPersistentVolumeSource": "VolumeID:s FSType=fsType:s ReadOnly:b SecretRef:*SecretReference",
    "FlexPersistentVolumeSource": "Driver:s FSType=fsType:s SecretRef:*SecretReference ReadOnly:b Options",
    "AzureFilePersistentVolumeSource": "SecretName:s ShareName:s ReadOnly:b SecretNamespace",
    "ScaleIOPersistentVolumeSource": (
        "Gateway:s System:s SecretRef:*SecretReference SSLEnabled=sslEnabled:b ProtectionDomain:s StoragePool:s "
        "StorageMode:s VolumeName:s FSType=fsType:s ReadOnly:b"
    ),
    "LocalVolumeSource": "Path:s FSType=fsType",
    "StorageOSPersistentVolumeSource": (
        "VolumeName:s VolumeNamespace:s FSType=fsType:s ReadOnly:b SecretRef:*ObjectReference"
    ),
    "CSIPersistentVolumeSource": (
        "Driver:s VolumeHandle:s ReadOnly:b FSType=fsType:s VolumeAttributes "
        "ControllerPublishSecretRef:*SecretReference NodeStageSecretRef:*SecretReference "
        "NodePublishSecretRef:*SecretReference ControllerExpandSecretRef:*SecretReference "
        "NodeExpandSecretRef:*SecretReference"
    ),
    "SecretReference": "Name:s Namespace:s",
    "ObjectReference": "Kind:s Namespace:s Name:s UID=uid:s APIVersion=apiVersion:s ResourceVersion:s FieldPath:s",
    "VolumeNodeAffinity": "Required:*NodeSelector",
}

REORDERED: dict[str, str] = {
    "PodSecurityContext": (
        "SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot SupplementalGroups "
        "SupplementalGroupsPolicy FSGroup Sysctls FSGroupChangePolicy SeccompProfile AppArmorProfile "
        "SELinuxChangePolicy"
    ),
    "PodSpec": (
        "Volumes InitContainers Containers EphemeralContainers RestartPolicy TerminationGracePeriodSeconds "
        "ActiveDeadlineSeconds DNSPolicy NodeSelector ServiceAccountName "
        "DeprecatedServiceAccount=serviceAccount:s AutomountServiceAccountToken NodeName HostNetwork:b "
        "HostPID=hostPID:b HostIPC=hostIPC:b ShareProcessNamespace SecurityContext ImagePullSecrets Hostname "
        "Subdomain Affinity SchedulerName Tolerations HostAliases PriorityClassName Priority DNSConfig "
        "ReadinessGates RuntimeClassName EnableServiceLinks PreemptionPolicy Overhead TopologySpreadConstraints "
        "SetHostnameAsFQDN OS HostUsers SchedulingGates ResourceClaims Resources HostnameOverride SchedulingGroup"
    ),
    "ServiceAccountTokenProjection": "Audience ExpirationSeconds: Path",
    "VolumeSource": (
        "HostPath EmptyDir GCEPersistentDisk AWSElasticBlockStore GitRepo Secret NFS ISCSI Glusterfs "
        "PersistentVolumeClaim RBD FlexVolume Cinder CephFS Flocker DownwardAPI FC AzureFile ConfigMap "
        "VsphereVolume Quobyte AzureDisk PhotonPersistentDisk Projected PortworxVolume ScaleIO StorageOS CSI "
        "Ephemeral Image"
    ),
    "PersistentVolumeSource": (
        "GCEPersistentDisk AWSElasticBlockStore HostPath Glusterfs NFS RBD ISCSI Cinder CephFS FC Flocker "
        "FlexVolume AzureFile VsphereVolume Quobyte AzureDisk PhotonPersistentDisk PortworxVolume ScaleIO Local "
        "StorageOS CSI"
    ),
}
"""Types whose order the rule HostFieldsOfPodSpecs changes: names of fields, with a kind if other than in TYPES."""
