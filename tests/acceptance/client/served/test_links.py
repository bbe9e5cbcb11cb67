from unit.memory.test_links import *  # noqa: F403
