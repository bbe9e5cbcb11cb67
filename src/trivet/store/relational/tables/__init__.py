"""The tables that users write: memories, links, shares, accounts, inbox, audit, sync."""
