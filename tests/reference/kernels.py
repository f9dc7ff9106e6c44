"""Every kernel as its formula, for two samples, in plain Python loops: the truth that fast code is compared with."""

import math

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
