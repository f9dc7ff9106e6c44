"""mercer's command, called in this process."""

from mercer.cli.main import main


def run(*words, code=0):
    """Run it with these words; it must end with this code."""
    try:
        returned = main([str(word) for word in words])
    except SystemExit as exit:
        returned = exit.code
    assert returned == code
