"""Running a store: checks, accounts, maintenance, export and import."""
