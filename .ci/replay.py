"""Replays recorded scenarios against a fresh server and fails when fewer steps pass than the floor.

replay.py GOLDEN_FOLDER FLOOR
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOKEN = "admintoken"
FLAGS = (
    "--authorization-mode=RBAC",
    "--service-cluster-ip-range=10.0.0.0/16",
    "--disable-admission-plugins=ServiceAccount",
    "--secure-port=0",
    "--controllers=-*",
)


def main(golden: Path, floor: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        tokens = Path(folder, "tokens.csv")
        tokens.write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        command = [Path(sys.executable).with_name("pilothouse"), "serve", *FLAGS]
        command += [f"--data-dir={folder}/data", f"--token-auth-file={tokens}"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            passed = replay(golden, url_of(server))
        finally:
            server.terminate()
            server.wait(30)
    print(f"{passed} steps pass, the floor is {floor}")
    return 0 if passed >= floor else 1


def url_of(server: subprocess.Popen[str]) -> str:
    """The server says where it listens once it is ready."""
    assert server.stdout is not None
    for line in server.stdout:
        print(line, end="")
        found = re.search(r"https://\S+:\d+", line)
        if found:
            return found[0]
    raise SystemExit("the server ended before it was ready")


def replay(golden: Path, url: str) -> int:
    command = [sys.executable, golden / "golden.py", "replay", "--server", url, "--token", TOKEN]
    command.append(golden / "scenarios")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    found = re.search(r"(\d+) passed, \d+ failed", done.stdout)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
