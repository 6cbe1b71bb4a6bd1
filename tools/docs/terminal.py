"""Records a session in a terminal as an animated picture: the commands run for real, on a server of their own.

.venv/bin/python -m tools.docs.terminal     writes docs/images/terminal.svg
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from tools.docs.pages import DOCS

_COMMANDS = [
    "kubectl create deployment web --image=nginx --replicas=3",
    "kubectl rollout status deployment/web",
    "kubectl get pods -o wide",
    "kubectl get --raw /version",
]
_WIDTH, _LINE, _LEFT, _TOP = 900, 19, 22, 56
_LONGEST = 104  # characters
_TYPING, _READING = 0.9, 1.1  # seconds for a command, and for its output


def record(picture: Path) -> None:
    """Run the commands, and write the picture of what they printed."""
    lines: list[tuple[float, str, bool]] = []
    with tempfile.TemporaryDirectory() as folder, _server(folder) as greeting:
        at = _show(lines, 0.3, "pilothouse serve --simulated-nodes=3", greeting)
        env = {**os.environ, "KUBECONFIG": f"{folder}/data/admin.kubeconfig"}
        for command in _COMMANDS:
            ran = subprocess.run(command.split(), env=env, capture_output=True, text=True, check=True)
            at = _show(lines, at, command, _shortened(ran.stdout))
    picture.write_text(_svg(lines, at + 4), encoding="utf-8")


@contextmanager
def _server(folder: str) -> Iterator[list[str]]:
    """Start a server; yield the lines that it prints until it is ready."""
    program = str(Path(sys.executable).with_name("pilothouse"))
    flags = [f"--data-dir={folder}/data", "--simulated-nodes=3", "--secure-port=0"]
    with subprocess.Popen(
        [program, "serve", *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        printed = []
        for line in server.stdout:
            if line.startswith("export"):
                break
            line = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:6443", line.rstrip())
            printed.append(line.replace(f"{folder}/data", "~/.local/share/pilothouse"))
        nodes = [
            "kubectl",
            f"--kubeconfig={folder}/data/admin.kubeconfig",
            "wait",
            "--timeout=60s",
            "--for=create",
            "node/node-3",
        ]
        subprocess.run(nodes, check=True, capture_output=True)
        yield [line for line in printed if line]
        server.terminate()


def _shortened(text: str) -> list[str]:
    """Return the lines that a reader needs: the last state of a rollout, the version, no long columns."""
    lines = [line.rstrip() for line in text.splitlines()]
    if any("successfully rolled out" in line for line in lines):
        return lines[-1:]
    if any("gitVersion" in line for line in lines):
        return [line.strip().rstrip(",") for line in lines if "gitVersion" in line]
    return [re.sub(r" +NOMINATED NODE.*| +<none> +<none>$", "", line) for line in lines]


def _show(lines: list[tuple[float, str, bool]], at: float, command: str, output: list[str]) -> float:
    lines.append((at, command, True))
    lines.extend((at + _TYPING, line[:_LONGEST], False) for line in output)
    return at + _TYPING + _READING


def _svg(lines: list[tuple[float, str, bool]], end: float) -> str:
    """Return the picture; viewers without animation show the whole session."""
    height = _TOP + _LINE * len(lines) + 14
    rows, styles = [], []
    for number, (at, text, typed) in enumerate(lines):
        share = 100 * at / end
        styles.append(f"@keyframes l{number}{{0%,{share:.2f}%{{opacity:0}}{share + 0.01:.2f}%,100%{{opacity:1}}}}")
        prompt = '<tspan class="p">$ </tspan>' if typed else ""
        y = _TOP + _LINE * number
        style = f'style="animation:l{number} {end:.1f}s infinite"'
        rows.append(f'<text x="{_LEFT}" y="{y}" class="{"c" if typed else "o"}" {style}>{prompt}{escape(text)}</text>')
    dots = "".join(f'<circle cx="{24 + 20 * n}" cy="22" r="6" fill="#2a363b"/>' for n in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="A session: pilothouse serve, then kubectl"><style>'
        "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}"
        ".c{fill:#e4ebed}.o{fill:#9fb0b7}.p{fill:#5cc6cd}"
        f"{''.join(styles)}@media (prefers-reduced-motion:reduce){{text{{animation:none!important}}}}</style>"
        f'<rect width="{_WIDTH}" height="{height}" rx="12" fill="#10171a"/>{dots}{"".join(rows)}</svg>\n'
    )


if __name__ == "__main__":
    record(DOCS / "images/terminal.svg")
