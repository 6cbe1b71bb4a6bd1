"""What was issued, noted beside it.

As long as the files are those that were noted, are not due for renewal and hold for the wanted names, a restart
need not parse any of them.
"""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Final

from pilothouse.controlplane.certificates.files import PUBLIC, write_atomically
from pilothouse.controlplane.certificates.names import ServingNames
from pilothouse.controlplane.certificates.paths import CertificatePaths

_NAME: Final = "issued.json"


def still_good(paths: CertificatePaths, wanted: ServingNames) -> bool:
    try:
        record = json.loads((paths.directory / _NAME).read_bytes())
        noted = ServingNames(frozenset(record["dns"]), frozenset(record["ips"]))
        fresh = time.time() < record["renewAfter"]
        return fresh and noted.covers(wanted) and record["files"] == _digests(paths)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def note(paths: CertificatePaths, names: ServingNames, renew_after: float) -> None:
    record = {
        "renewAfter": renew_after,
        "dns": sorted(names.dns),
        "ips": sorted(names.ips),
        "files": _digests(paths),
    }
    write_atomically(paths.directory / _NAME, json.dumps(record, indent=2).encode(), mode=PUBLIC)


def _digests(paths: CertificatePaths) -> dict[str, str]:
    return {path.name: _digest(path) for path in paths.files if path.exists()}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
