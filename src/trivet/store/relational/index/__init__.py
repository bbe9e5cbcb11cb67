"""In-memory indexes over the memories, the files that hold them, and the queues that fill them."""
