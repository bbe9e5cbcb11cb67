from unit.memory.test_memories import *  # noqa: F403
