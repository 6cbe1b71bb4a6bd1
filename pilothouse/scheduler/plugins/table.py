"""Plugins by extension point, in call order: upstream's default profile."""

from __future__ import annotations

from pilothouse.scheduler.plugins.default_preemption import DefaultPreemption
from pilothouse.scheduler.plugins.devices.dynamic_resources import DynamicResources
from pilothouse.scheduler.plugins.image_locality import ImageLocality
from pilothouse.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from pilothouse.scheduler.plugins.interface import Plugin
from pilothouse.scheduler.plugins.node_affinity import NodeAffinity
from pilothouse.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from pilothouse.scheduler.plugins.node_name import NodeName
from pilothouse.scheduler.plugins.node_ports import NodePorts
from pilothouse.scheduler.plugins.node_resources import NodeResourcesBalancedAllocation, NodeResourcesFit
from pilothouse.scheduler.plugins.node_unschedulable import NodeUnschedulable
from pilothouse.scheduler.plugins.pod_topology_spread import PodTopologySpread
from pilothouse.scheduler.plugins.scheduling_gates import SchedulingGates
from pilothouse.scheduler.plugins.taint_toleration import TaintToleration
from pilothouse.scheduler.plugins.volumes.node_volume_limits import NodeVolumeLimits
from pilothouse.scheduler.plugins.volumes.volume_binding import VolumeBinding
from pilothouse.scheduler.plugins.volumes.volume_restrictions import VolumeRestrictions
from pilothouse.scheduler.plugins.volumes.volume_zone import VolumeZone

PRE_ENQUEUE: tuple[type[Plugin], ...] = (SchedulingGates, DynamicResources, DefaultPreemption)

FILTER: tuple[type[Plugin], ...] = (
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    NodeDeclaredFeatures,
)

SCORE: tuple[tuple[type[Plugin], int], ...] = (
    # plugin                        weight
    (TaintToleration, 3),
    (NodeAffinity, 2),
    (NodeResourcesFit, 1),
    (PodTopologySpread, 2),
    (InterPodAffinity, 2),
    (NodeResourcesBalancedAllocation, 1),
    (ImageLocality, 1),
)

RESERVE: tuple[type[Plugin], ...] = (VolumeBinding, DynamicResources)

PRE_BIND: tuple[type[Plugin], ...] = (VolumeBinding, DynamicResources)
