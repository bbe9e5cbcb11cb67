"""Trivet in the hands of coding agents: hooks, capture, and the settings that install them."""
