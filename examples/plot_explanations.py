"""
Why a machine predicts what it does
===================================

Shapley values say how much each feature adds to f(x), compared with other samples. For a Gaussian kernel, and every
other product over the features, ``explain`` computes them exactly.
"""

import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import mercer

data = load_breast_cancer(as_frame=True)
X = pd.DataFrame(StandardScaler().fit_transform(data.data), columns=data.data.columns)
y = data.target_names[data.target]
model = mercer.SVC(C=3.0).fit(X, y)
explanation = model.explain(X[::4], background=X[1::12])
explanation.plot("beeswarm")
print(f"values and base value add up to f, to {explanation.error:.0e}")

# %%
# The mean absolute value ranks the features. Most of the sum comes from many features with small values.

explanation.plot("bar", max_features=12)

# %%
# The values of one sample, and the training samples that it resembles.

explanation[0].plot()
print(model.reasons(X[:1], n=5)[0])

# %%
# How f depends on one feature: the mean over all samples, and the curves of some of them behind it. Nearly parallel
# curves mean that the feature acts alone.

model.partial_dependence(X, "worst texture", individual=True).plot()

# %%
# The mean of f over the values of two features.

model.partial_dependence(X[::4], ("worst texture", "worst area")).plot()

# %%
# With several classes there is a function for each pair. The sum over the pairs of a class explains the score of that
# class.

worst = (data.data["worst area"] > data.data["worst area"].quantile(0.9)).to_numpy()
grades = y.copy().astype(object)
grades[(y == "malignant") & worst] = "large"
several = mercer.SVC(C=3.0).fit(X, grades.astype(str)).explain(X[::8], background=X[1::12])
several.plot("bar", max_features=6)
several.of_class("large").plot("beeswarm", max_features=6)
