"""What a repository's index keeps: facts of each file on disk, and segments of them in memory."""
