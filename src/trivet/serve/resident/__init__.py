"""One process per user that keeps models and indexes in memory, and its clients.

`server.py` is the process, `protocol.py` its messages, `client.py` its client, and `hook_client.py`
the script of an agent's hook.
"""
