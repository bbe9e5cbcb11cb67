"""Differently written dates map to one format."""

from __future__ import annotations

import pytest

from trivet.graph.extract import dates_in


@pytest.mark.parametrize(
    "text",
    ["it was 2024-03-05.", "on 5 March 2024", "on 5th of March 2024", "on 5 Mar. 2024", "on March 5, 2024 we met",
     "on Mar 5th, 2024", "on march 05 2024", "(2024-03-05)"],
)  # fmt: skip
def test_day_formats(text: str) -> None:
    assert dates_in(text)[0] == ["2024-03-05"]


@pytest.mark.parametrize(
    "text", ["in 2024-03 we met", "in March 2024 we met", "in Mar. 2024 we met"]
)
def test_month_formats(text: str) -> None:
    assert dates_in(text)[0] == ["2024-03"]


def test_month_names_map_to_numbers() -> None:
    names = "January February March April May June July August September October November December".split()
    for number, name in enumerate(names, 1):
        assert dates_in(f"on {name} 7, 1999")[0] == [f"1999-{number:02d}-07"]
        assert dates_in(f"on 7 {name[:3]} 1999")[0] == [f"1999-{number:02d}-07"]


@pytest.mark.parametrize(
    "text",
    [
        "2024-13-01",
        "45 March 2024",
        "0 May 2024",
        "March 45, 2024",
        "3024-01-01",
        "may 5",
        "12024-03-05x",
        "1-2-3",
    ],
)
def test_invalid_days_are_ignored(text: str) -> None:
    assert [found for found in dates_in(text)[0] if len(found) > len("2024-03")] == []


def test_removing_dates_keeps_words_separate() -> None:
    dates, rest = dates_in("Alice left on 5 March 2024 Bob stayed until June 2024, and 2024-07-01.")
    assert sorted(dates) == ["2024-03-05", "2024-06", "2024-07-01"]
    assert "2024" not in rest
    assert not any(month in rest for month in ("March", "June"))
    assert "Alice left on" in rest
    assert rest.index(",") < rest.index("Bob stayed")
