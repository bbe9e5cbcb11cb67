"""Time expressions in a text are found and resolved, as of noon on Sunday, November 15, 2026."""

from __future__ import annotations

from datetime import datetime

import pytest

from trivet.dates.parse import find_time_expressions
from trivet.dates.spans import format_span
from trivet.memory.supersession.newer_first import asks_about_past

NOW = datetime(2026, 11, 15, 12)


def meant(text: str, nearest: bool = False) -> list[str]:
    return [
        format_span(span) for one in find_time_expressions(text, NOW, nearest) for span in one.spans
    ]


MEANT = {
    # days
    "what did I note yesterday?": ["14 November 2026"],
    "the day before yesterday": ["13 November 2026"],
    "what is on tomorrow": ["16 November 2026"],
    "what did we say this morning": ["15 November 2026"],
    "who called last night": ["14-15 November 2026"],
    "on Wednesday 11 November": ["11 November 2026"],
    "what happened on 11 November": ["11 November 2026"],
    "on 21 November": ["21 November 2025", "21 November 2026"],
    "did we swap the night of 21 November": ["21 November 2025", "21 November 2026"],
    "Wednesday, November 11th": ["11 November 2026"],
    "the 3rd of November 2026": ["3 November 2026"],
    "November 3, 2026": ["3 November 2026"],
    "on 2026-11-03": ["3 November 2026"],
    "on 3.11.2026": ["3 November 2026"],
    "on 03/11/2026": ["3 November 2026", "11 March 2026"],
    "on 13/11/2026": ["13 November 2026"],
    "last Saturday, 7 November": ["7 November 2026"],
    "29 February": ["29 February 2024", "29 February 2028"],
    # days of the week
    "what did we discuss on Friday": ["13 November 2026"],
    "what did we discuss Friday?": ["13 November 2026"],
    "who will come on Friday": ["20 November 2026"],
    "last Monday": ["9 November 2026"],
    "this coming Tuesday": ["17 November 2026"],
    "next Friday": ["20 November 2026"],
    "on Sunday": ["8 November 2026", "22 November 2026"],
    "last weekend": ["7-8 November 2026"],
    "what did we do at the weekend": ["14-15 November 2026"],
    # weeks
    "what did we decide last week": ["2-8 November 2026"],
    "this week": ["9-15 November 2026"],
    "next week": ["16-22 November 2026"],
    "the week before last": ["26 October 2026 to 1 November 2026"],
    "in the week of 26 October": ["26 October 2026 to 1 November 2026", "25-31 October 2027"],
    "decided in the first week of November": ["1-7 November 2026"],
    "2-8 November 2026": ["2-8 November 2026"],
    # months, quarters, seasons, years
    "what broke in March? It was bad": ["March 2026"],
    "plans for the fair in March": ["March 2027"],
    "the fair in March": ["March 2026", "March 2027"],
    "last March": ["March 2026"],
    "next March": ["March 2027"],
    "May 2025": ["May 2025"],
    "2026-11": ["November 2026"],
    "what was lost in Sept": ["September 2026"],
    "what was lost late in September": ["21-30 September 2026"],
    "early March 2026": ["1-11 March 2026"],
    "at the end of October 2026": ["21-31 October 2026"],
    "last month": ["October 2026"],
    "Q3 2025 figures": ["July-September 2025"],
    "the third quarter of 2025": ["July-September 2025"],
    "what was sold in Q3": ["July-September 2026"],
    "in autumn 2025": ["September-November 2025"],
    "last summer": ["June-August 2026"],
    "last winter": ["December 2025 to February 2026"],
    "back in 2024": ["January-December 2024"],
    "last year": ["January-December 2025"],
    # relative to now
    "two weeks ago": ["28 October 2026 to 5 November 2026"],
    "3 days ago": ["12 November 2026"],
    "about a year ago": ["16 May 2025 to 17 May 2026"],
    "in the last 3 days": ["12-15 November 2026"],
    "over the past month": ["15 October 2026 to 15 November 2026"],
    "recently": ["1-15 November 2026"],
    "in two weeks": ["25 November 2026 to 3 December 2026"],
    # open ranges and from-to ranges
    "since Monday": ["9-15 November 2026"],
    "since March": ["1 March 2026 to 15 November 2026"],
    "before March": ["before 1 March 2026"],
    "after last Tuesday": ["from 11 November 2026"],
    "until yesterday": ["before 15 November 2026"],
    "between March and May 2026": ["March-May 2026"],
    "from 3 November to 7 November 2026": ["3-7 November 2026"],
    "between now and 5 December": ["15 November 2026 to 5 December 2026"],
    "first in\nMarch 2026,\nthen on 2026-11-03": ["March 2026", "3 November 2026"],
}


@pytest.mark.parametrize("text", MEANT)
def test_expression_resolves_to_days(text: str) -> None:
    assert meant(text) == MEANT[text]


@pytest.mark.parametrize(
    "text",
    [
        "may I deploy on port 2080",
        "the May release",
        "Sunday roast recipe",
        "march of the penguins",
        "we deploy every Friday",
        "closed on Sundays",
        "none on Thursday mornings",
        "a release every two weeks on Wednesday",
        "beans in Spring Boot",
        "the note from June",
        "how many come in a day",
        "second try of 3 in main.py",
        "uuid 2026-11-0344",
        "31 February 2026",
        "order 1093 of 2026-1093",
        "it may fall down",
        "the last one, next to the current one",
        "",
    ],
)
def test_text_without_time_expression(text: str) -> None:
    assert meant(text) == []


def test_expression_has_text_and_position() -> None:
    text = "What did we plan at the end of October, and what since Monday that we work on lately?"
    found = find_time_expressions(text, NOW)
    assert [one.text for one in found] == ["at the end of October", "since Monday", "lately"]
    assert [text[one.start : one.stop] for one in found] == [one.text for one in found]
    assert [one.spelled for one in found] == [True, False, False]


def test_statement_means_nearest_day_or_named_year() -> None:
    assert meant("Concert on 13 December", nearest=True) == ["13 December 2026"]
    assert meant("Outage on 23 August", nearest=True) == ["23 August 2026"]
    assert meant("Summer 2027: a house near Quimper from 3 July", nearest=True) == [
        "June-August 2027",
        "3 July 2027",
    ]


def test_calendar_limits() -> None:
    for now in (datetime(1, 1, 1), datetime(9999, 12, 31)):
        assert all(
            one.spans
            for one in find_time_expressions(
                "last year, next year, 999 years ago, 12 months ago, tomorrow, last week", now
            )
        )


@pytest.mark.parametrize(
    ("query", "past"),
    [
        ("Which heating did we want at first?", True),
        ("What did the ticket cost before?", True),
        ("Where did she use to live? Where she used to be.", True),
        ("What was the plan in October?", True),
        ("What did we decide last week?", True),
        ("Who was Ana's first tutor?", True),
        ("Which bank did we have at the start of the year?", True),
        ("What was my old number?", True),
        ("Where was the party supposed to be?", True),
        ("Wo hat der Chor früher geprobt?", True),
        ("Qui gardait les enfants avant Mme Lebrun ?", True),
        ("Ki volt korábban a karnagy?", True),
        ("What did we decide about the heating?", False),
        ("Until when is the shop open?", False),
        ("Should commits be squashed before they are merged?", False),
        ("What is her first name?", False),
        ("What has changed since Monday?", False),
        ("What is planned for next week?", False),
        ("Which port does it listen on today?", False),
    ],
)
def test_question_about_past_is_recognized(query: str, past: bool) -> None:
    assert asks_about_past(query, NOW) is past
