"""A server as if it were a store of one's own: the same verbs, sent over HTTP.

`call.py` makes requests from the contract and the table of routes, `problem.py` makes our errors from a server's,
`attempts.py` says what may be tried again; `connection.py` and `async_connection.py` send.
"""
