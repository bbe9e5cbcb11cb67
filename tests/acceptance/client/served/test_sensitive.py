from unit.memory.test_sensitive import *  # noqa: F403
