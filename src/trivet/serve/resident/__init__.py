"""One process a user that keeps models and indexes warm, and the ways to it.

`server.py` is the process; `paths.py` says where its socket is and whether it lives; `connect.py` opens a memory by
way of it; `client.py` asks it and does without it when it goes; `hook_client.py` is what an agent's hook runs.
"""
