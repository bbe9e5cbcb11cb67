from unit.memory.test_portable import *  # noqa: F403
