"""What becomes of kube-apiserver's options: the store of a stand-in, and only the controllers that keep the API itself.

Who tests with envtest expects that a Deployment makes no pods: nothing moves what a test has made but what it tests.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from pilothouse.controllers.choice import ALL, NONE
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
"""What keeps objects as the API says they are. Without those for protection a namespace with claims never ends."""


def options_for_envtest(options: Options, scratch: Path) -> Options:
    """Return them with what kube-apiserver's command line leaves open. `scratch` is a folder for what nobody reads."""
    return _without_workloads(_stored(options, scratch))


def _stored(options: Options, scratch: Path) -> Options:
    if "data-dir" in options.given:
        scratch = Path(options.pilothouse.data_dir)
    folder = store_of_stand_in(options.etcd.servers)
    if folder is None:
        return replace(options, pilothouse=replace(options.pilothouse, data_dir=str(scratch)))
    home = folder / quote(options.etcd.prefix.strip("/"), safe="")  # servers with other prefixes do not meet in etcd
    embedded = replace(options.etcd, servers=(), cafile="", certfile="", keyfile="", storage_backend="")
    etcd = replace(embedded, unsafe_no_fsync=True)
    return replace(options, etcd=etcd, pilothouse=replace(options.pilothouse, data_dir=str(home)))


def _without_workloads(options: Options) -> Options:
    """What is chosen by name adds to ours or takes from them; `*` and `-*` say what all the others do."""
    chosen = options.controllers.controllers if "controllers" in options.given else ()
    if ALL in chosen or NONE in chosen:
        return options
    scheduler = options.controllers.scheduler and "scheduler" in options.given
    controllers = replace(options.controllers, controllers=(*chosen, *CONTROLLERS), scheduler=scheduler)
    return replace(options, controllers=controllers, given=options.given | {"controllers", "scheduler"})
