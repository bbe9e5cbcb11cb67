from unit.memory.test_why_not import *  # noqa: F403
