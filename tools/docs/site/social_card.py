"""Draws the picture that other sites show beside a link to the documentation.

.venv/bin/python -m tools.docs.site.social_card     writes docs/images/social-card.png, with Chromium
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from tools.docs.pages import DOCS

_CARD = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; width: 1200px; height: 630px; background: #10171a; color: #e4ebed;
  font-family: system-ui, sans-serif; }}
main {{ padding: 76px 84px; }}
header {{ display: flex; align-items: center; gap: 26px; font-size: 52px; font-weight: 650; letter-spacing: -.02em; }}
header svg {{ width: 84px; height: 84px; }}
h1 {{ font-size: 60px; line-height: 1.14; letter-spacing: -.025em; margin: 52px 0 40px; font-weight: 640; }}
p {{ font: 28px ui-monospace, Menlo, Consolas, "Liberation Mono", monospace; color: #5cc6cd; margin: 0 0 12px; }}
p span {{ color: #9fb0b7; }}
</style><main><header>{logo}Pilothouse</header>
<h1>A real Kubernetes API<br>for your operator's tests</h1>
<p><span>$</span> pilothouse serve</p><p><span>no Docker · no Go · no cluster · 1.34 to 1.37</span></p></main>"""


def draw(picture: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        card = Path(folder) / "card.html"
        card.write_text(_CARD.format(logo=(DOCS / "assets/logo.svg").read_text()), encoding="utf-8")
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            f"--user-data-dir={folder}/profile",
        ]
        subprocess.run(
            ["chromium", *flags, "--window-size=1200,630", f"--screenshot={picture}", card.as_uri()],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    draw(DOCS / "images/social-card.png")
