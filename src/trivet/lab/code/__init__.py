"""The lab of code search: trees of source code with graded files, measured by file."""
