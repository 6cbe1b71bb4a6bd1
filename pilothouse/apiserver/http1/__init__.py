"""Reading HTTP/1.1, for connections of clients and connections to other servers.

    connection ── bytes ──▶ parser ── heads, pieces of bodies, ends ──▶ connection

`parser.py` has the contract and the choice between two implementations: `with_zttp.py`, which is fast, and
`in_python.py`, which needs nothing but Python. Both accept and refuse the same messages.
"""
