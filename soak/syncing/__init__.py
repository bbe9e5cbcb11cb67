"""Simulated laptops and a server over real stores, with network, disk and human faults by seed."""
