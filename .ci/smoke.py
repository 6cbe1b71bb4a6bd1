"""Tries an installed Pilothouse: its version, and a server that becomes ready, answers and stops.

    python smoke.py [PILOTHOUSE]

PILOTHOUSE is the command; without it, the module of this Python is run. Needs nothing but the standard library.
"""

from __future__ import annotations

import re
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path


def main() -> None:
    command = sys.argv[1:] or [sys.executable, "-m", "pilothouse.cli.main"]
    print(subprocess.run([*command, "version"], check=True, capture_output=True, text=True).stdout.strip())
    with tempfile.TemporaryDirectory(prefix="pilothouse-smoke-", ignore_cleanup_errors=True) as folder:
        serve(command, Path(folder))


def serve(command: list[str], folder: Path) -> None:
    flags = [f"--data-dir={folder}", "--secure-port=0"]
    with subprocess.Popen([*command, "serve", *flags], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = next(filter(None, (re.match(r"  server +(https://\S+)", line) for line in process.stdout)))
            pki = folder / "pki"
            trusted = ssl.create_default_context(cafile=str(pki / "ca.crt"))
            trusted.load_cert_chain(pki / "admin.crt", pki / "admin.key")
            with urllib.request.urlopen(f"{found[1]}/readyz", context=trusted, timeout=30) as answer:
                print(f"{found[1]}/readyz: {answer.status} {answer.read().decode()}")
        finally:
            process.terminate()
            process.wait(60)


if __name__ == "__main__":
    main()
