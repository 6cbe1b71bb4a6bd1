"""A small schema with every kind of atom in it, and values that fit it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pilothouse.machinery.apply.atoms import DEDUCED, Atom, ListAtom, MapAtom, Scalar

STRING, NUMBER = Atom(Scalar.STRING), Atom(Scalar.NUMERIC)
STRINGS = Atom(map=MapAtom(element=STRING))
ITEM = Atom(map=MapAtom({"name": STRING, "port": NUMBER, "tags": STRINGS}))
SCHEMA = Atom(
    map=MapAtom(
        {
            "number": NUMBER,
            "labels": STRINGS,
            "selector": Atom(map=MapAtom(element=STRING, atomic=True)),
            "args": Atom(list=ListAtom(STRING)),
            "finalizers": Atom(list=ListAtom(STRING, associative=True)),
            "items": Atom(list=ListAtom(ITEM, associative=True, keys=("name",))),
            "nested": Atom(map=MapAtom({"labels": STRINGS, "number": NUMBER})),
            "any": DEDUCED,
        }
    )
)

words = st.sampled_from(["a", "b", "c"])
numbers = st.integers(0, 2)
strings = st.dictionaries(words, words, max_size=3)
items = st.lists(
    st.fixed_dictionaries({"name": words}, optional={"port": numbers, "tags": strings}),
    max_size=3,
    unique_by=lambda item: item["name"],
)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=6,
)
objects: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "number": numbers,
        "labels": strings,
        "selector": strings,
        "args": st.lists(words, max_size=3),
        "finalizers": st.lists(words, max_size=3, unique=True),
        "items": items,
        "nested": st.fixed_dictionaries({}, optional={"labels": strings, "number": numbers}),
        "any": json_values,
    },
)
