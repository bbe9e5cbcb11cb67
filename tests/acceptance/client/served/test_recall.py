from unit.memory.test_recall import *  # noqa: F403
