"""The command line: a shell over the library; one module per command, imported when it is named."""
