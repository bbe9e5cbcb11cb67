"""What Trivet does at an agent's hooks. `answer.py` has the table of moments and calls the function of each.

Hooks run in the resident process, or in a process of their own (`without_resident.py`) where there is none.
"""
