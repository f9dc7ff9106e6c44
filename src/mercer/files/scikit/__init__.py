"""The classes of scikit-learn that a ``.mercer`` file may hold, and what must be true of them."""
