"""Time expressions in English text, such as "last week", "since Monday", "Q3".

`parse.find_time_expressions` returns their calendar spans as seen from a moment: now for questions,
the day of writing for memories. No library fits: those tried take "may", "we" and port numbers for
dates, miss "last week", and return no end of a period (docs/decisions/0025). Import nothing here,
so that a recall without dates loads little.
"""
