"""YAML is read by one module, which bounds the depth: libyaml's own composer recurses until the stack overflows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import pilothouse
from pilothouse.cli.offline.documents import Lines
from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.config.model import ConfigError
from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError, events

PACKAGE = Path(pilothouse.__file__).parent
GUARDED = "machinery/codec/yaml_nodes.py"
READERS = frozenset({"load", "load_all", "compose", "compose_all", "parse", "scan"})
DEEP = b"[" * 100_000


def test_no_other_module_reads_yaml() -> None:
    found = {
        f"{file.relative_to(PACKAGE)}: {use}"
        for file in PACKAGE.rglob("*.py")
        if file.relative_to(PACKAGE).as_posix() != GUARDED
        if "yaml" in (text := file.read_text())
        for use in _reading_uses(ast.parse(text))
    }
    assert found == set()


def _reading_uses(tree: ast.AST) -> Iterator[str]:
    """Yield every use of a name of the yaml module that reads, under whatever name the module is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("yaml", "_yaml"):
            yield f"from {node.module} import"
        if isinstance(node, ast.Import):
            yield from (f"import {name.name} as" for name in node.names if name.name == "yaml" and name.asname)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml":
            name = node.attr.removeprefix("safe_").removeprefix("full_").removeprefix("unsafe_")
            if name in READERS or node.attr.endswith("Loader"):
                yield f"yaml.{node.attr}"


def test_the_check_finds_readers_in_every_spelling() -> None:
    for text in (
        "import yaml\nyaml.safe_load('')",
        "import yaml\nyaml.compose('', Loader=1)",
        "import yaml\nx = yaml.CSafeLoader",
        "from yaml import load",
        "import yaml as y",
    ):
        assert [*_reading_uses(ast.parse(text))]
    assert not [*_reading_uses(ast.parse("import yaml\nyaml.safe_dump(1)"))]


def test_deep_nesting_is_refused_by_every_reader(tmp_path: Path) -> None:
    with pytest.raises(YamlError, match="exceeded max depth"):
        parse_yaml(DEEP)
    with pytest.raises(YamlError, match="exceeded max depth"):
        list(events(DEEP))
    assert Lines(DEEP).of("a.b") == 1
    (tmp_path / "config").write_bytes(DEEP)
    with pytest.raises(ConfigError, match="not valid YAML: yaml: exceeded max depth"):
        load_kubeconfig(tmp_path / "config")
