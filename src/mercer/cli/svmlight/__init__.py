"""SVMlight's programs as commands."""
