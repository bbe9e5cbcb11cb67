"""The parts of a store, shared by every relational database."""
