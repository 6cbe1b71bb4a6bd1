"""The documentation, by one command.

.venv/bin/python -m tools.docs run docs/start/index.md     do what pages show, and compare
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.docs.pages import ROOT


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.docs", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    run = commands.add_parser("run", help="do what pages show, and compare")
    run.add_argument("pages", nargs="+", type=Path, metavar="PAGE")
    alone = commands.add_parser("run-here", help="one page, in the network that there is")
    alone.add_argument("page", type=Path, metavar="PAGE")
    build = commands.add_parser("build", help="build the site")
    build.add_argument("--out", type=Path, default=ROOT / "site", metavar="DIR", help="where to (site)")
    build.add_argument("--versioned", action="store_true", help="as DIR/X.Y, beside the sites of other versions")
    reference = commands.add_parser("reference", help="write the pages that are made from the code")
    reference.add_argument("--check", action="store_true", help="only say which are not as they would be written")
    options = parser.parse_args()
    if options.command == "reference":
        return _reference(check=options.check)
    if options.command == "build":
        from tools.docs.site.build import build as build_site

        return build_site(options.out, versioned=options.versioned)
    if options.command == "run":
        from tools.docs.running.process import run_page

        return max([run_page(page).returncode for page in options.pages])
    return _run_here(options.page)


def _reference(*, check: bool) -> int:
    from tools.docs.reference.write import outdated, write

    if not check:
        write()
        return 0
    pages = outdated()
    for page in pages:
        print(f"{page.relative_to(ROOT)} is not what `python -m tools.docs reference` would write", file=sys.stderr)
    return 1 if pages else 0


def _run_here(page: Path) -> int:
    from tools.docs.running.network import set_up
    from tools.docs.running.page import PageFailed, PageRun

    set_up()
    with tempfile.TemporaryDirectory(prefix="page-", ignore_cleanup_errors=True) as folder:
        try:
            PageRun(page.resolve(), Path(folder)).run()
        except PageFailed as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
