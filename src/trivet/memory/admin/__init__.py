"""Running a store: checks, accounts, upkeep, export and import."""
