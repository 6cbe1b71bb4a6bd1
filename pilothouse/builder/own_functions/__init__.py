"""Resources whose objects live in the author's own functions: a table, a cloud API, something computed.

A store holds a mirror of what the functions answered, and an ordinary registry over it does all that clients expect.

    functions.py       calls the author's functions; what they raise and answer becomes what the server understands
    answers.py         one object as a function answered it
    merging.py         an answer together with the metadata that only the mirror knows
    order.py           which of several answers and writes that overlap is the newer one
    single_flight.py   one question at a time about the same thing
    comparing.py       an answer against the mirror: what has to be written
    mirror.py          asks, compares, and writes what differs
    write_through.py   the store under the registry: a write goes to the author first
    following.py       keeps the mirror up to date while somebody watches
    storage.py         the verbs that the author's functions allow
    registry.py        all of it together: `own_registry`
"""
