"""Takes the pictures of the console for README and documentation, in Chromium, of a cluster with a failing rollout.

.venv/bin/python -m tools.docs.pictures     writes docs/images/console*.png
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from pathlib import Path

from pilothouse.client import load_kubeconfig
from pilothouse.console.server import Console
from pilothouse.testing import Server
from tools.docs.pages import DOCS, ROOT

_SCRIPT = ROOT / "console" / "test" / "browser"
_BROKEN = {
    "apiVersion": "simulation.pilothouse.dev/v1alpha1",
    "kind": "SimulatedBehavior",
    "metadata": {"name": "no-image"},
    "spec": {
        "selector": {"podSelector": {"matchLabels": {"app": "api"}}},
        "container": {"imagePullError": "manifest unknown"},
    },
}


async def _take(kubeconfig: Path, project: Path) -> None:
    console = Console(load_kubeconfig(str(kubeconfig)))
    address = await console.start()
    words = [
        "node",
        str(project / "pictures.mjs"),
        shutil.which("chromium") or "chromium",
        address,
        str(DOCS / "images"),
    ]
    code = await (await asyncio.create_subprocess_exec(*words)).wait()
    await console.close()
    if code:
        raise SystemExit(code)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Server(simulated_nodes=3) as api:
        project = Path(folder) / "browser"
        shutil.copytree(_SCRIPT, project)
        subprocess.run(["npm", "install", "--prefer-offline", "--no-package-lock"], cwd=project, check=True)
        kubectl = ["kubectl", f"--kubeconfig={api.kubeconfig}", "--namespace=shop"]
        subprocess.run([*kubectl, "create", "namespace", "shop"], check=True)
        behaviors = api.client().resource("simulation.pilothouse.dev/v1alpha1", "simulatedbehaviors")
        api.eventually(lambda: behaviors.create(_BROKEN), within=60)
        for name, replicas in (("web", 6), ("cache", 2), ("api", 1)):
            subprocess.run(
                [*kubectl, "create", "deployment", name, "--image=nginx", f"--replicas={replicas}"], check=True
            )
        for name in ("web", "cache"):
            subprocess.run([*kubectl, "rollout", "status", f"deployment/{name}"], check=True)
        asyncio.run(_take(api.kubeconfig, project))


if __name__ == "__main__":
    main()
