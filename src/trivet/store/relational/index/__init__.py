"""In-memory indexes over the memories, their files, and the queues that fill them."""
