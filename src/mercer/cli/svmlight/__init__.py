"""The programs of SVMlight, as commands."""
