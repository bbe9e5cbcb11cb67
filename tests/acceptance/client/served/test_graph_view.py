from unit.memory.test_graph_view import *  # noqa: F403
