from unit.memory.test_duplicates import *  # noqa: F403
