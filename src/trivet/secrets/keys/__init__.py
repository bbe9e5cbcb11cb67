"""The keys that seal secrets: where they are kept, made and rotated."""

from trivet.secrets.keys.ring import Key, KeyRing, key_stores

__all__ = ["Key", "KeyRing", "key_stores"]
