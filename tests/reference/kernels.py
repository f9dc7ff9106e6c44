"""Every kernel as its formula, for two samples, in plain Python loops: the truth that fast code is compared with."""

import math
from collections import Counter
from itertools import combinations, product

import numpy as np
from scipy.special import gamma as gamma_function
from scipy.special import kv


def dot(x, z):
    total = 0.0
    for a, b in zip(x, z, strict=True):
        total += float(a) * float(b)
    return total


def squared_distance(x, z):
    total = 0.0
    for a, b in zip(x, z, strict=True):
        total += (float(a) - float(b)) ** 2
    return total


def l1_distance(x, z):
    total = 0.0
    for a, b in zip(x, z, strict=True):
        total += abs(float(a) - float(b))
    return total


def linear(x, z):
    return dot(x, z)


def polynomial(x, z, degree, gamma, coef0):
    value = 1.0
    for _ in range(degree):
        value *= gamma * dot(x, z) + coef0
    return value


def sigmoid(x, z, gamma, coef0):
    return math.tanh(gamma * dot(x, z) + coef0)


def cosine(x, z):
    length = math.sqrt(dot(x, x)) * math.sqrt(dot(z, z))
    return dot(x, z) / length if length > 0 else 0.0


def gaussian(x, z, gamma):
    return math.exp(-gamma * squared_distance(x, z))


def gaussian_with_matrix(x, z, M):
    total = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            total += (float(x[i]) - float(z[i])) * float(M[i][j]) * (float(x[j]) - float(z[j]))
    return math.exp(-total)


def matern(x, z, nu, length_scale):
    r = math.sqrt(squared_distance(x, z)) / length_scale
    if r == 0:
        return 1.0
    if nu == math.inf:
        return math.exp(-(r**2) / 2)
    t = math.sqrt(2 * nu) * r
    return 2 ** (1 - nu) / gamma_function(nu) * t**nu * kv(nu, t)


def rational_quadratic(x, z, alpha, length_scale):
    return (1 + squared_distance(x, z) / (2 * alpha * length_scale**2)) ** -alpha


def laplacian(x, z, gamma):
    return math.exp(-gamma * l1_distance(x, z))


def chi2(x, z, gamma):
    total = 0.0
    for a, b in zip(x, z, strict=True):
        if float(a) + float(b) > 0:
            total += (float(a) - float(b)) ** 2 / (float(a) + float(b))
    return math.exp(-gamma * total)


def tanimoto(x, z):
    either = dot(x, x) + dot(z, z) - dot(x, z)
    return dot(x, z) / either if either != 0 else 1.0


def spectrum(x, z, length):
    total = 0
    for i in range(len(x) - length + 1):
        for j in range(len(z) - length + 1):
            if x[i : i + length] == z[j : j + length]:
                total += 1
    return float(total)


def normalised_spectrum(x, z, length):
    size = math.sqrt(spectrum(x, x, length) * spectrum(z, z, length))
    return spectrum(x, z, length) / size if size > 0 else 0.0


def matrix(formula, X, Z, **parameters):
    """The matrix of a formula, entry by entry."""
    out = np.empty((len(X), len(Z)))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            out[i, j] = formula(x, z, **parameters)
    return out


def anova(x, z, order, gamma):
    return sum(
        math.prod(math.exp(-gamma * (x[f] - z[f]) ** 2) for f in some) for some in combinations(range(len(x)), order)
    )


def spline(x, z):
    """1 + xz + ∫ (a − t)₊(b − t)₊ dt over t > 0, of numbers of one sign, the integral by Simpson's rule, which is exact
    for cubics."""
    out = 1.0
    for a, b in zip(x, z, strict=True):
        m = min(abs(a), abs(b)) if a * b > 0 else 0.0
        inside = [(abs(a) - t) * (abs(b) - t) for t in (0.0, m / 2, m)]
        out *= 1.0 + a * b + m / 6 * (inside[0] + 4 * inside[1] + inside[2])
    return out


def intersection(x, z):
    return sum(min(a, b) for a, b in zip(x, z, strict=True))


def overlap(x, z, shares=None):
    counts = [1.0 if shares is None else 1.0 - shares[f].get(a, 0.0) for f, a in enumerate(x)]
    return sum(count for count, a, b in zip(counts, x, z, strict=True) if a == b) / len(x)


def gower(x, z, categorical, gamma):
    parts = [float(a != b) if f in categorical else abs(a - b) for f, (a, b) in enumerate(zip(x, z, strict=True))]
    return math.exp(-gamma * sum(parts) / len(parts))


def _pieces(text, longest):
    return Counter(text[i:j] for i in range(len(text)) for j in range(i + 1, min(len(text), i + longest) + 1))


def substrings(x, z, longest, decay):
    of_x, of_z = (_pieces(text, longest or len(text)) for text in (x, z))
    return sum(decay ** len(s) * of_x[s] * of_z[s] for s in of_x)


def mismatch(x, z, length, mismatches, alphabet):
    def count(s, text):
        parts = [text[i : i + length] for i in range(len(text) - length + 1)]
        return sum(sum(a != b for a, b in zip(s, part, strict=True)) <= mismatches for part in parts)

    return sum(count(s, x) * count(s, z) for s in map("".join, product(alphabet, repeat=length)))


def subsequences(x, z, length, decay):
    """Every way to choose characters of both, one by one."""

    def weights(text):
        found = Counter()
        for places in combinations(range(len(text)), length):
            found["".join(text[p] for p in places)] += decay ** (places[-1] - places[0] + 1)
        return found

    of_x, of_z = weights(x), weights(z)
    return sum(of_x[s] * of_z[s] for s in of_x)
