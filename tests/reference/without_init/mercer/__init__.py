"""mercer without what its own __init__ imports: a child that needs the core, or one module, starts ten times sooner."""

import os

__path__ = [os.environ["MERCER_FOLDER"]]
