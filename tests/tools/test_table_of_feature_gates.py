"""The tables of feature gates, from upstream's lists of several binaries."""

from __future__ import annotations

from tools.feature_gates import dependency_rows, gate_rows, read_binary

OLD = """
- name: Leaving
  versionedSpecs:
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.32"}
- name: Growing
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.35"}
"""
NEW = """
- name: Growing
  versionedSpecs:
  - {default: false, lockToDefault: false, preRelease: Alpha, version: "1.35"}
  - {default: true, lockToDefault: false, preRelease: Beta, version: "1.36"}
  - {default: true, lockToDefault: true, preRelease: GA, version: "1.36", minCompatibilityVersion: "1.36"}
"""
CLIENT_GO = """
var defaults = map[Feature]VersionedSpecs{
\tWatching: {
\t\t{Version: version.MustParse("1.30"), Default: false, PreRelease: Beta},
\t\t{Version: version.MustParse("1.36"), Default: true, PreRelease: GA, LockToDefault: true},
\t},
\tOther: {
\t\t{Version: version.MustParse("1.36"), Default: false, PreRelease: Deprecated},
\t},
}
"""
UNVERSIONED = """
var defaults = map[Feature]FeatureSpec{
\tWatching: {Default: false, PreRelease: Beta},
}
"""
KUBE = """
var defaultKubernetesFeatureGateDependencies = map[featuregate.Feature][]featuregate.Feature{
\tGrowing: {featuregate.Feature(clientfeatures.Watching), genericfeatures.Other}, // a remark
}
"""
BINARIES = {35: read_binary(OLD, UNVERSIONED, ""), 36: read_binary(NEW, CLIENT_GO, KUBE)}


def test_each_gate_is_a_row_with_its_binaries_and_its_stages() -> None:
    assert [row.split() for row in gate_rows(BINARIES)] == [
        ["Growing", "35-36", "-", "-", "-", "-", "a", "B"],
        ["Leaving", "35-35", "-", "G!", "G!", "G!", "G!", "."],
        ["Other", "36-36", "-", "-", "-", "-", "-", "d"],
        ["Watching", "35-36", "b", "b", "b", "b", "b", "G!"],
    ]


def test_dependencies_are_rows_with_the_binaries_that_have_them() -> None:
    assert list(dependency_rows(BINARIES)) == ["    Growing 36-36 Watching Other"]
