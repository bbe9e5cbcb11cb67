"""Laptops and a server over real stores, driven by a seed: every fault that a network, a disk or a person brings."""
