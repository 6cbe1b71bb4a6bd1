"""Field selectors read, match, print, change and refuse as upstream's do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.selectors.fields import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    escape_value,
    from_set,
    parse,
    unescape_value,
)
from pilothouse.machinery.selectors.requirement import InvalidSelector


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (",,", ""),
        ("b=2,a==1", "a=1,b=2"),
        ("a!=1", "a!=1"),
        ("a=", "a="),
        ("=v", "=v"),
        (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
        ("metadata.name=a,metadata.namespace=b", "metadata.name=a,metadata.namespace=b"),
    ],
)
def test_a_selector_prints_in_canonical_form(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=1,b", "invalid selector: 'a=1,b'; can't understand 'b'"),
        ("a===b", "invalid field selector: unescaped character in value: 61"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        ("a=b\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_a_text_that_is_no_selector_is_refused_with_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(InvalidSelector) as refusal:
        parse(text)
    assert str(refusal.value) == message


def test_a_missing_field_counts_as_empty() -> None:
    assert parse("spec.nodeName=").matches({})
    assert not parse("spec.nodeName!=").matches({})
    assert parse("a=1,b!=2").matches({"a": "1"})
    assert not parse("a=1,b!=2").matches({"a": "1", "b": "2"})
    assert not parse("a=1").matches({"a": "2"})


def test_everything_and_nothing_are_told_apart() -> None:
    assert EVERYTHING.empty
    assert EVERYTHING.matches({"a": "1"})
    assert not NOTHING.empty
    assert not NOTHING.matches({})


def test_only_an_equality_requires_an_exact_match() -> None:
    selector = parse("metadata.name=a,spec.nodeName!=b")
    assert selector.requires_exact_match("metadata.name") == "a"
    assert selector.requires_exact_match("spec.nodeName") is None
    assert selector.requires_exact_match("other") is None


def test_a_transformation_renames_drops_and_refuses() -> None:
    def rename(term: Requirement) -> Requirement | None:
        if term.field == "bad":
            raise InvalidSelector("field label not supported: bad")
        return None if term.field == "drop" else replace(term, field="metadata." + term.field)

    assert str(parse("name=a,drop=1").transform(rename)) == "metadata.name=a"
    with pytest.raises(InvalidSelector, match="not supported: bad"):
        parse("bad=1").transform(rename)


def test_equal_selectors_hash_alike() -> None:
    assert hash(parse("b=2,a=1")) == hash(from_set({"a": "1", "b": "2"}))
    assert parse("a=1") is parse("a=1")


@given(st.text(alphabet="ab,=\\!é", max_size=12))
def test_unescaping_undoes_escaping(value: str) -> None:
    assert unescape_value(escape_value(value)) == value


TERMS = st.builds(
    Requirement,
    field=st.sampled_from(["a", "b", "metadata.name"]),
    value=st.text(alphabet="xy,=\\!", max_size=4),
    equal=st.booleans(),
)


@given(st.lists(TERMS, max_size=4), st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["x", "", "=,"])))
def test_a_printed_selector_parses_to_one_that_matches_the_same(
    terms: list[Requirement], fields: dict[str, str]
) -> None:
    selector = Selector(tuple(terms))
    expected = all((fields.get(term.field, "") == term.value) is term.equal for term in terms)
    assert selector.matches(fields) is expected
    assert parse(str(selector)).matches(fields) is expected


@given(
    st.lists(TERMS, min_size=17, max_size=40), st.dictionaries(st.sampled_from("ab"), st.sampled_from(["x", "", "=,"]))
)
def test_many_requirements_match_as_each_of_them_does(terms: list[Requirement], fields: dict[str, str]) -> None:
    expected = all(Selector((term,)).matches(fields) for term in terms)
    assert Selector(tuple(terms)).matches(fields) is expected
