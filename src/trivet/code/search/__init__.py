"""From a query to ranked chunks: search legs, fusion, and related places."""
