"""The reasons for and against a node, one file each. `table.py` says which take part where."""
