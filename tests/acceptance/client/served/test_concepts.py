from unit.memory.test_concepts import *  # noqa: F403
