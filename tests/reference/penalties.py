"""Penalties as a user might write them, with their conjugates written out."""


class Fourth:
    """r⁴; sup over r of sr − r⁴ is 3(s/4)^(4/3)."""

    def value(self, r):
        return r**4

    def derivative(self, r):
        return 4 * r**3

    def conjugate(self, s):
        return 3 * (s / 4) ** (4 / 3)


class Mixed:
    """r + r²; of its conjugate, max(0, s − 1)²/4, only what lies above a slope of 1 counts."""

    def value(self, r):
        return r + r * r

    def derivative(self, r):
        return 1 + 2 * r

    def conjugate(self, s):
        return max(0.0, s - 1) ** 2 / 4
