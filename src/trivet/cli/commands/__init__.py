"""The commands, a file for each thing one does with a memory. Each says what it calls and how it shows the answer."""
