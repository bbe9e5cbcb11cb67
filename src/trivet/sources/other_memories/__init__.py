"""What other memories keep, as lines that `import` takes in. Each system is one file; all of them only read."""
