"""Learning from conversations: statements worth keeping."""

from trivet.agents.capture.learn import learn
from trivet.agents.capture.proposals import Captured, Curated, ReadByModel, curate, read_waiting

__all__ = ["Captured", "Curated", "ReadByModel", "curate", "learn", "read_waiting"]
