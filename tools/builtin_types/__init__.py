"""Builds all that is known of the built-in types from three sources, which it checks against each other.

`go_structs/` lists the fields: names, types, numbers and order, as Go's structs and their tags have them. Upstream's
published definitions say the same of each field, and add its description and how it merges. `overlay.toml` has what
neither says: fields of our own, and declared defaults. `enums.toml` has the values of Go's enum types, `restored.json`
the definitions of types that are published in another form. These sources describe Kubernetes 1.36; `differences/` has
a file for each other version (`differences.py`).
"""
