"""The steps of a recall after the legs: expand, rerank, choose, judge, present. `decision.py` has what they hand on."""
