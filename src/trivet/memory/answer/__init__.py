"""The steps of a recall: retrieve, rerank, weigh, choose, judge, present."""
