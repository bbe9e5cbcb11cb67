"""Facts that change: whether one statement may update another, on save and in an answer."""
