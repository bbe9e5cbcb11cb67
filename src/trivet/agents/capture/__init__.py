"""Learning from conversations: what a user said that is worth keeping, into the inbox or straight into the store."""

from trivet.agents.capture.learn import learn
from trivet.agents.capture.proposals import Captured, Curated, ReadByModel, curate, read_waiting

__all__ = ["Captured", "Curated", "ReadByModel", "curate", "learn", "read_waiting"]
