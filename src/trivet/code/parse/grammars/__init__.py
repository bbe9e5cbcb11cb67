"""Grammars by language family: which nodes define names."""
