"""
Text: a linear machine on sparse counts
=======================================

With words as columns and sentences as rows, the matrix has many columns and is mostly zero. ``LinearSVC`` takes the
sparse matrix as it is and never forms a kernel matrix. Its weights show which words indicate which class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from mercer import LinearSVC, linear_path

# %%
# To avoid a download, we make up sentences about a kitchen and about a workshop. Three words in four are common to
# both.

WORDS = {
    "kitchen": ["oven", "bread", "flour", "knead", "simmer", "butter", "garlic", "whisk", "dough", "salt", "recipe"],
    "workshop": ["drill", "timber", "sand", "glue", "chisel", "plane", "clamp", "varnish", "screw", "saw", "dowel"],
}
COMMON = ["the", "then", "with", "some", "more", "again", "slowly", "until", "done", "now", "board", "knife", "water"]


def sentence(rng, topic):
    words = [rng.choice(WORDS[topic] if rng.random() < 0.25 else COMMON) for _ in range(14)]
    if rng.random() < 0.3:  # a word from the other place
        words.append(rng.choice(WORDS["workshop" if topic == "kitchen" else "kitchen"]))
    return " ".join(words)


rng = np.random.default_rng(0)
topics = rng.choice(["kitchen", "workshop"], size=1500)
texts = [sentence(rng, topic) for topic in topics]
print(topics[0], "|", texts[0])

# %%
# Train, with a proven gap of at most a thousandth of the objective. Newton's method on the squared hinge goes further
# anyway: its last step reaches full precision.

train, test, y_train, y_test = train_test_split(texts, topics, random_state=0)
model = make_pipeline(TfidfVectorizer(), LinearSVC(C=1.0, tol=None, gap_tol=1e-3)).fit(train, y_train)
print(f"{model.score(test, y_test):.3f} of the test sentences are right")
print(f"proven gap: {model[-1].certificate_.relative_gap:.1e} of the objective; solver: {model[-1].solver_}")

# %%
# The words with the largest weights.

words = model[0].get_feature_names_out()
w = model[-1].coef_[0]
order = np.argsort(w)
shown = np.concatenate([order[:8], order[-8:]])
figure, ax = plt.subplots(layout="constrained")
ax.barh(words[shown], w[shown], color=np.where(w[shown] > 0, "#d1603d", "#3b6fb6"))
ax.set_title(f"{model.classes_[0]} (blue) against {model.classes_[1]} (red)")

# %%
# A path in C: the fit for each C starts from the previous solution.

counts = model[0].transform(train)
Cs = np.logspace(-2, 2, 15)
path = linear_path(counts, y_train, Cs=Cs, loss="hinge")
held_out = model[0].transform(test)
right = [
    np.mean(model.classes_[((held_out @ coef.ravel() + b) >= 0).astype(int)] == y_test)
    for coef, b in zip(path.coef, np.ravel(path.intercept), strict=True)
]
figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
ax.semilogx(Cs, right, marker="o")
ax.set(xlabel="C", title="share of the test sentences that are right")
