"""External retrieval systems: bounded requests, and validation of their answers."""
