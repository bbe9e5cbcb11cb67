"""Trivet in the settings of coding agents: what each one expects, shown before it is written, and taken back whole."""
