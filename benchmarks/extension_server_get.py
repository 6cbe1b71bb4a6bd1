"""What a GET of an extension server of pilothouse.builder costs through the aggregator: from its embedded store, and
from its author's own functions, beside a GET that the aggregator's own server answers.

    python benchmarks/extension_server_get.py

In turns, and the best of each: what else the machine does hits all alike, or not at all.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from aggregator import Client, Cost, Place, port_of, run, small_gets, start

GROUP = "things.example.com"
IN_DEFAULT = f"/apis/{GROUP}/v1/namespaces/default"
PATHS = {"local": "/api/v1/namespaces/default", "store": f"{IN_DEFAULT}/things/a", "functions": f"{IN_DEFAULT}/owns/a"}
THING = {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"data": "x" * 900}}
TURNS, ROUNDS = 8, 200


async def measure(place: Place, pid: int) -> None:
    client = await place.client()
    await until_available(client)
    await client.request("POST", f"{IN_DEFAULT}/things", THING)
    costs: dict[str, list[Cost]] = {name: [] for name in PATHS}
    for _ in range(TURNS):
        for name, path in PATHS.items():
            costs[name].append(await small_gets(client, path, pid, ROUNDS))
    show(costs)


def show(costs: dict[str, list[Cost]]) -> None:
    best = {name: min(cost.median for cost in each) for name, each in costs.items()}
    for name, median in best.items():
        cpu = min(cost.cpu for cost in costs[name])
        print(f"GET, {name}: {median:.3f} ms, {median / best['local']:.2f} times local, {cpu:.3f} ms of CPU there")
    print(f"functions against store: {best['functions'] / best['store']:.2f}")


async def until_available(client: Client) -> None:
    path = f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}"
    while True:
        await asyncio.sleep(0.1)
        conditions = json.loads(await client.request("GET", path)).get("status", {}).get("conditions") or [{}]
        if conditions[0].get("status") == "True":
            return await asyncio.sleep(0.5)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        data, things = Path(name) / "data", Path(name) / "things"
        processes = [start("-m", "pilothouse.cli.main", "serve", "--secure-port=0", f"--data-dir={data}")]
        try:
            place = Place(port_of(processes[0]), processes[0].pid, data / "pki")
            words = (f"--kubeconfig={data / 'admin.kubeconfig'}", f"--data-dir={things}", "--secure-port=0")
            processes.append(start(str(Path(__file__).parent / "servers" / "things.py"), *words, "--register"))
            assert processes[1].stdout is not None
            assert "is ready" in processes[1].stdout.readline()
            run(measure(place, processes[1].pid))
        finally:
            for process in processes:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
