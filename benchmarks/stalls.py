"""How long hostile requests keep others waiting: each attack, its bytes, and the longest wait of a client for `/livez`.

stalls.py                        a server of this tree, started here
stalls.py --kubeconfig FILE      another one; needs a token, and one of somebody without rights in --nobody
stalls.py duplicate YAML         only attacks with one of these words in their names
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests/support"))

from attacks import Attack, Victim, attacks
from livez_client import LivezClient, livez_client
from servers.local import USER_TOKEN, local_pilothouse
from servers.target import Target


@contextmanager
def chosen_target(kubeconfig: Path | None) -> Iterator[Target]:
    if kubeconfig is not None:
        yield Target.from_kubeconfig(kubeconfig)
        return
    with tempfile.TemporaryDirectory() as folder, local_pilothouse(Path(folder), "--simulated-nodes=1") as (target, _):
        yield target


def measure(victim: Victim, other: LivezClient, attack: Attack) -> None:
    other.longest_wait()
    start = time.perf_counter()
    attack.play(victim)
    took = time.perf_counter() - start
    print(f"| {attack.name} | {attack.size():,} | {took:.2f} s | {other.longest_wait() * 1e3:.0f} ms |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--nobody", default=USER_TOKEN, help="the token of a user without any role")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    with chosen_target(options.kubeconfig) as target:
        host, port = target.address
        victim = Victim(host, port, target.ca_file or "", target.token, options.nobody)
        with livez_client(host, port, ca_file=victim.ca_file, token=options.nobody, pid=target.pid) as other:
            print("| attack | bytes | took | longest wait of others |\n|---|---|---|---|")
            for attack in attacks():
                if not options.words or any(word in attack.name for word in options.words):
                    measure(victim, other, attack)


if __name__ == "__main__":
    main()
