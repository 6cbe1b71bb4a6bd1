"""Function-backed resources: objects live in the author's functions, such as a table or a cloud API.

A store holds a mirror of the functions' answers, and an ordinary registry on the mirror serves clients.

    functions.py    calls the author's functions and maps their errors and answers
    answers.py      one object as a function answered it
    comparing.py    an answer compared with the mirror: the necessary writes
    order.py        the order of overlapping answers and writes
    mirror.py       asks, compares, and writes the differences; one refresh at a time per scope
    following.py    keeps the mirror up to date while clients watch
    registry.py     the served verbs, the write-through store, and `function_backed_registry`
"""
