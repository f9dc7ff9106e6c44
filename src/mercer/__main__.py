"""``python -m mercer`` is the command ``mercer``."""

from mercer.cli.main import command

if __name__ == "__main__":
    command()
