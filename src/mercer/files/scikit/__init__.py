"""Classes of scikit-learn that a ``.mercer`` file may hold, and checks of their attributes."""
