"""A reader for each kind of file: its text in, parts out. None of them touches a store."""
