"""What every store over a relational database shares: the tables are alike, the SQL beside each store is its own."""
