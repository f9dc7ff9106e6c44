"""``python -m mercer`` is the command ``mercer``."""

import sys

from mercer.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
