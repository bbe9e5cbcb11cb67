"""Recall together with other retrieval systems: asked side by side, brought to common ids, fused with our own legs."""
