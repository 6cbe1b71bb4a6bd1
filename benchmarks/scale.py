"""The load of a cluster on its API server, one size after the other, against Kubernetes' service level objectives.

    scale.py --steps 100,500,1000 --seconds 60         a Pilothouse that is started here, without controllers
    scale.py --kubeconfig FILE --pid N [--pid N]       any other server that is empty; of its processes, and etcd's
    --workers 2  --flag=--etcd-servers=…               of the Pilothouse that is started here
    --media json                                       instead of protobuf, which kubelets and controllers speak

Each node is a connection with a kubelet's watches (its pods, itself, services, drivers, four ConfigMaps and Secrets), a
lease every 10 s and a status every 5 min, and has 30 pods. Five controllers hold all pods, nodes and services; every
20 s one of them lists them again, and every 2 s a user lists a namespace of 3,000 pods. 10 pods a second for each 1,000
nodes are made, bound, reported to run, and as many deleted: 16 requests for each.

Prints Markdown. Cores are processor time for each second; the load generator, which is one process, has its own column.
The kubeconfig needs a token.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).parent))

from cluster.api import JSON, PROTOBUF
from cluster.report import report, resources
from cluster.steps import Load, Step, Steps
from servers.local import local_pilothouse
from servers.processes import memory
from servers.target import Target


async def measure(target: Target, pids: Sequence[int], options: argparse.Namespace) -> None:
    at_rest = sum(map(memory, pids))
    load = Load(options.pods, options.churn / 1000, options.controllers, options.seconds)
    media = JSON if options.media == "json" else PROTOBUF
    steps: list[Step] = []
    async for step in Steps(target, pids, load, media).run(_numbers(options.steps)):
        steps.append(step)
        print("\n".join(resources(steps)), file=sys.stderr, flush=True)
    print("\n".join(report(options.name or target.name, steps, _numbers(options.larger), at_rest)), flush=True)


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--pid", action="append", type=int, default=[], help="a process of the server, or of its etcd")
    parser.add_argument("--name", help="what the server is called in the tables")
    parser.add_argument("--steps", default="100,500,1000", help="numbers of nodes")
    parser.add_argument(
        "--larger", default="5000", help="numbers of nodes for which the model says what they would take"
    )
    parser.add_argument("--seconds", type=float, default=60, help="with pods that come and go; half as long without")
    parser.add_argument("--pods", type=int, default=30, help="of each node")
    parser.add_argument("--churn", type=float, default=10, help="pods a second for each 1,000 nodes")
    parser.add_argument("--controllers", type=int, default=5)
    parser.add_argument("--media", choices=["protobuf", "json"], default="protobuf")
    parser.add_argument("--workers", default="1")
    parser.add_argument("--flag", action="append", default=[], help="of the Pilothouse that is started here")
    options = parser.parse_args()
    if options.kubeconfig:
        uvloop.run(measure(Target.from_kubeconfig(options.kubeconfig), options.pid, options))
        return
    flags = ["--controllers=-*", f"--workers={options.workers}", *options.flag]
    with tempfile.TemporaryDirectory() as folder, local_pilothouse(Path(folder), *flags) as (target, _):
        assert target.pid is not None
        uvloop.run(measure(target, [target.pid, *options.pid], options))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server ends, too
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    main()
