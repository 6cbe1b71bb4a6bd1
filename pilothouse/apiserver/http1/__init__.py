"""HTTP/1.1 parsing for client and server connections.

    connection ── bytes ──▶ parser ── heads, pieces of bodies, ends ──▶ connection

`parser.py` has the contract and selects the implementation: `with_zttp.py` is fast, `in_python.py` has no dependencies.
Both accept and reject the same messages.
"""
