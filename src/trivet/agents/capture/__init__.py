"""Learning from conversations: what a user said that is worth keeping, into the inbox or straight into the store."""

from trivet.agents.capture.background import in_background
from trivet.agents.capture.curate import Curated, curate
from trivet.agents.capture.learn import Captured, learn
from trivet.agents.capture.reading import Asked, read_waiting

__all__ = ["Asked", "Captured", "Curated", "curate", "in_background", "learn", "read_waiting"]
