"""A repository's index: facts of files on disk, and segments of them in memory."""
