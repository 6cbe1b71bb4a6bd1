"""Quantities read, print, compare and add up as upstream's do."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.machinery.quantity import ZERO, Format, Quantity, QuantityError, milli_quantity, parse_quantity


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0", "0"),
        ("0.0", "0"),
        ("-0", "0"),
        ("+", "0"),
        (".", "0"),
        ("0Ki", "0"),
        ("0e12", "0"),
        ("100m", "100m"),
        ("1000m", "1"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("1.500", "1.500"),
        ("+5", "+5"),
        ("0005", "0005"),
        ("-1.5k", "-1500"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1500000", "1500k"),
        ("12e6", "12e6"),
        ("12E6", "12E6"),
        ("12000000e0", "12e6"),
        ("1e-3", "1e-3"),
        ("1e2", "100"),
        ("1E", "1E"),
        ("1Ki", "1Ki"),
        ("1024Ki", "1Mi"),
        ("8Mi", "8Mi"),
        ("0.5Ki", "512"),
        ("1.5Gi", "1536Mi"),
        ("0.3Ki", "307200m"),
        ("0.00001Ki", "10240u"),
        ("0.0001n", "1n"),
        ("1.0000000001", "1000000001n"),
        ("-0.0000000001", "-1n"),
        ("1e-1000000000", "1e-9"),
        ("1e1000000000", "10e999999999"),
        ("10Ei", "9223372036854775807"),
        ("7Ei", "7Ei"),
        ("100000000000000000000", "100E"),
        ("1000E", "1"),
        ("1234567890123456789012", "1234567890123456789012"),
    ],
)
def test_a_quantity_prints_as_upstream_does(text: str, canonical: str) -> None:
    assert str(parse_quantity(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("abc", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("1.2.3", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("5 Gi", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("5\n", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("1e", "unable to parse quantity's suffix"),
        ("1kk", "unable to parse quantity's suffix"),
        ("1m5", "unable to parse quantity's suffix"),
        ("1-", "unable to parse quantity's suffix"),
        ("1e99999999999999999999", "unable to parse quantity's suffix"),
        ("e-20", "unable to parse numeric part of quantity"),
        ("9" * 5000, "unable to parse numeric part of quantity"),
    ],
)
def test_a_text_that_is_no_quantity_is_refused_with_upstreams_words(text: str, message: str) -> None:
    with pytest.raises(QuantityError) as refusal:
        parse_quantity(text)
    assert str(refusal.value) == message


def test_a_sum_has_the_format_of_the_first_that_is_not_zero() -> None:
    assert str(parse_quantity("1Gi") + parse_quantity("1073741824")) == "2Gi"
    assert str(parse_quantity("1073741824") + parse_quantity("1Gi")) == "2147483648"
    assert str(ZERO + parse_quantity("1Gi")) == "1Gi"
    assert str(parse_quantity("1Gi") - parse_quantity("512Mi")) == "512Mi"
    assert str(parse_quantity("+5") - ZERO) == "5"
    assert str(-parse_quantity("1e3")) == "-1e3"


def test_equal_amounts_are_equal_however_they_are_written() -> None:
    assert parse_quantity("1") == parse_quantity("1000m") == milli_quantity(1000)
    assert hash(parse_quantity("1Ki")) == hash(parse_quantity("1024"))
    assert parse_quantity("1k") != parse_quantity("1Ki")
    assert parse_quantity("1") != 1


def test_of_amounts_far_apart_the_larger_is_the_sum() -> None:
    huge = parse_quantity("1e1000000000")
    assert huge > parse_quantity("1n") > ZERO > -huge
    assert huge.value() == 2**63 - 1
    assert huge + parse_quantity("1") == parse_quantity("1") + huge == huge
    assert parse_quantity("1") - huge == -huge
    assert str(parse_quantity("1e200") + parse_quantity("1")) == "1" + "0" * 199 + "1"


@pytest.mark.parametrize("first", ["1", "-1", "1Gi", "5" * 4000, "1" + "0" * 3999])
@pytest.mark.parametrize("others", [["1e2147483647"], [f"1e{240 * step}" for step in range(30)], ["3" * 4000 + "e200"]])
def test_a_sum_of_huge_amounts_can_be_printed_and_read_again(first: str, others: list[str]) -> None:
    """No number of digits is computed that an exponent names."""
    amounts = [parse_quantity(each) for each in (first, *others)]
    total = sum(amounts[1:], amounts[0])
    assert parse_quantity(str(total)), "beyond the largest suffix, upstream writes digits without any"
    assert total.value() == 2**63 - 1
    assert total > amounts[0]


def test_values_are_rounded_away_from_zero() -> None:
    assert parse_quantity("1.1").value() == 2
    assert parse_quantity("-1.1").value() == -2
    assert parse_quantity("1n").milli_value() == 1
    assert parse_quantity("1.5k").value() == 1500
    assert str(parse_quantity("1234567n").round_up(-6)) == "1235u"
    assert float(parse_quantity("1500m")) == 1.5
    assert parse_quantity("20E").value() == 2**63 - 1


SUFFIXES = {
    "": Fraction(1),
    "m": Fraction(1, 1000),
    "u": Fraction(1, 10**6),
    "k": Fraction(1000),
    "G": Fraction(10**9),
    "Ki": Fraction(1024),
    "Gi": Fraction(2**30),
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}
NUMBERS = st.decimals(-(10**6), 10**6, places=3, allow_nan=False, allow_infinity=False)
TEXTS = st.tuples(NUMBERS, st.sampled_from(list(SUFFIXES))).map(lambda pair: f"{pair[0]:f}{pair[1]}")
FORMATS = st.sampled_from(list(Format))
QUANTITIES = st.builds(Quantity, st.integers(-(10**21), 10**21), st.integers(-9, 12), FORMATS)


@given(NUMBERS, st.sampled_from(list(SUFFIXES)))
def test_the_amount_read_is_exact(number: object, suffix: str) -> None:
    assert parse_quantity(f"{number:f}{suffix}").fraction == Fraction(str(number)) * SUFFIXES[suffix]


@given(TEXTS)
def test_printed_quantity_parses_to_the_same_amount(text: str) -> None:
    quantity = parse_quantity(text)
    assert parse_quantity(str(quantity)) == quantity
    negated = -quantity
    assert str(parse_quantity(str(negated))) == str(negated)


@given(QUANTITIES, QUANTITIES, st.integers(-1000, 1000))
def test_arithmetic_is_that_of_fractions(a: Quantity, b: Quantity, factor: int) -> None:
    assert (a + b).fraction == a.fraction + b.fraction
    assert (a - b).fraction == a.fraction - b.fraction
    assert (a * factor).fraction == a.fraction * factor
    assert (-a).fraction == -a.fraction


@given(QUANTITIES, QUANTITIES)
def test_the_order_is_that_of_fractions(a: Quantity, b: Quantity) -> None:
    x, y = a.fraction, b.fraction
    assert (a < b, a <= b, a == b, a >= b, a > b) == (x < y, x <= y, x == y, x >= y, x > y)


@given(QUANTITIES, st.integers(-9, 6))
def test_rounding_goes_to_the_next_multiple_away_from_zero(a: Quantity, scale: int) -> None:
    unit = Fraction(10) ** scale
    rounded = a.round_up(scale).fraction
    assert rounded % unit == 0
    assert 0 <= abs(rounded) - abs(a.fraction) < unit
    assert rounded == 0 or (rounded > 0) is (a.fraction > 0)
