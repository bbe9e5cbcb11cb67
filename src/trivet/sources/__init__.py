"""Where memories come from: files of the user, and other memory systems."""
