"""The pod life cycle on a simulated node, as pure functions of pod, state and time.

`machine.advance` computes the next state and its time, `status` renders the API status, `restore` reads the state back
after a restart. No I/O.
"""
