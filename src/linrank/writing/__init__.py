"""Data sets into files: tables, SVMlight/LETOR text, judgements."""
