"""Expressions of time in English text: "last week", "on Wednesday 11 November", "since Monday", "Q3", "two weeks ago".

`find.find_time_expressions` finds them and turns each into spans of the calendar, seen from a given moment. The same grammar
reads questions (from now) and memories (from the day they were written). No library fits: those tried take "may", "we"
and the number of a port for dates or cannot find "last week", and none says where a period ends (docs/decisions/0025).

`cues.py` says fast whether there can be any, `forms.py` has the ways of writing, `meaning.py` what each means, and
`find.py` what makes a date of them in their place. Nothing is imported here, so that a recall without any loads little.
"""
