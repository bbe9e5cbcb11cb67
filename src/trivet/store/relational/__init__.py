"""The parts of a store, written once for every relational database."""
