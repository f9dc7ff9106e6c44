"""Run the command ``mercer`` by ``python -m mercer``."""

from mercer.cli.main import command

if __name__ == "__main__":
    command()
