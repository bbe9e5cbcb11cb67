"""What Trivet does at an agent's hooks: a file for each moment, `answer.py` with the table of them.

They run in the resident process, or in a process of their own (`alone.py`) where there is none.
"""
