"""Kernel values, decision values and ‖w − w'‖ in decimal arithmetic of sixty digits: plain loops, nothing shared."""

from decimal import Decimal, localcontext

DIGITS = 60


def value(recipe, x, z):
    """k(x, z) of a recipe without factor and normalisation."""
    x, z = ([Decimal(float(v)) for v in row] for row in (x, z))
    numbers = [Decimal(float(v)) for v in recipe.numbers]
    if recipe.inner == "dot":
        t = sum((a * b for a, b in zip(x, z, strict=True)), Decimal(0))
    elif recipe.inner == "sqdist":
        t = sum(((a - b) ** 2 for a, b in zip(x, z, strict=True)), Decimal(0))
    else:
        t = sum((abs(a - b) for a, b in zip(x, z, strict=True)), Decimal(0))
    if recipe.ending in ("gaussian", "laplacian"):
        t = (-numbers[0] * t).exp()
    elif recipe.ending == "polynomial":
        t = (numbers[0] * t + numbers[1]) ** int(recipe.numbers[2])
    return Decimal(recipe.scale) * t + Decimal(recipe.constant)


def decision(expansion, x, output=0):
    """f(x) of one output."""
    with localcontext() as context:
        context.prec = DIGITS
        recipe, table = expansion.kernel.recipe(), dense(expansion.coefficients)
        total = Decimal(float(expansion.b[output]))
        for c, z in zip(table[:, output], expansion.vectors, strict=True):
            total += Decimal(float(c)) * value(recipe, x, z)
        return total


def distance(one, other, output=0):
    """‖w − w'‖ of one output."""
    with localcontext() as context:
        context.prec = DIGITS
        recipe = one.kernel.recipe()
        c = [Decimal(float(v)) for v in dense(one.coefficients)[:, output]]
        c += [-Decimal(float(v)) for v in dense(other.coefficients)[:, output]]
        v = [*one.vectors, *other.vectors]
        total = sum(
            (
                c[i] * c[j] * value(recipe, v[i], v[j]) * (2 if j < i else 1)
                for i in range(len(c))
                for j in range(i + 1)
            ),
            Decimal(0),
        )
        return float(max(total, Decimal(0)).sqrt())


def dense(table):
    return table.toarray() if hasattr(table, "toarray") else table
