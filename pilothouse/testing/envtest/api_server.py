"""Options of the kube-apiserver replacement: the store of the stand-in, and no workload controllers.

Tests with envtest expect that a Deployment creates no pods: only the tested controllers change objects.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from pilothouse.controllers.table import ALL, NONE
from pilothouse.controlplane.options.options import Options
from pilothouse.testing.envtest.store_place import store_of_stand_in

CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
)
"""Controllers that maintain API semantics. Without the protection controllers, a namespace with claims never
terminates.
"""


def options_for_envtest(options: Options, scratch: Path) -> Options:
    """Return the options, completed for envtest. `scratch` is a temporary data directory."""
    return _without_workloads(_with_store(options, scratch))


def _with_store(options: Options, scratch: Path) -> Options:
    if "data-dir" in options.given:
        scratch = Path(options.pilothouse.data_dir)
    folder = store_of_stand_in(options.etcd.servers)
    if folder is None:
        return replace(options, pilothouse=replace(options.pilothouse, data_dir=str(scratch)))
    home = folder / quote(options.etcd.prefix.strip("/"), safe="")  # prefixes separate servers in etcd
    embedded = replace(options.etcd, servers=(), cafile="", certfile="", keyfile="", storage_backend="")
    etcd = replace(embedded, unsafe_no_fsync=True)
    return replace(options, etcd=etcd, pilothouse=replace(options.pilothouse, data_dir=str(home)))


def _without_workloads(options: Options) -> Options:
    """Select the controllers. Names in --controllers add to or remove from the defaults; `*` and `-*` replace them."""
    chosen = options.controllers.controllers if "controllers" in options.given else ()
    if ALL in chosen or NONE in chosen:
        return options
    scheduler = options.controllers.scheduler and "scheduler" in options.given
    controllers = replace(options.controllers, controllers=(*chosen, *CONTROLLERS), scheduler=scheduler)
    return replace(options, controllers=controllers, given=options.given | {"controllers", "scheduler"})
