"""Small cases that share a test: what failed says which of them it was."""

from contextlib import contextmanager


@contextmanager
def named(*case):
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {case}")
        raise
