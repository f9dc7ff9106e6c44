"""How the gallery shows the examples: their order, their style, and films as pictures that move."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.animation import Animation, PillowWriter
from sphinx_gallery.scrapers import figure_rst

# From the machines to what is done with them, then the figures of the lecture notes.
_ORDER = (
    "margins",
    "maps",
    "tube_and_quantiles",
    "novelty",
    "text",
    "kernel_algebra",
    "tuning",
    "svm_path",
    "ridge_path",
    "hard_margin",
    "model_pictures",
    "explanations",
    "compression",
    "unsupervised",
    "learning",
    "notes_margins",
    "notes_losses",
    "notes_feature_maps",
    "notes_pair",
    "notes_steps",
    "notes_network",
    "notes_overfitting",
    "notes_alternatives",
)
_FRAMES_PER_SECOND = 6


class Order:
    """A key that sorts the files of the examples; one that is not listed ends the build."""

    def __init__(self, src_dir):
        pass

    def __call__(self, filename):
        return _ORDER.index(Path(filename).stem.removeprefix("plot_"))


def use_style(gallery_conf, fname):
    """Let every example begin with the style of all figures."""
    mpl.rcdefaults()
    mpl.use("agg")
    plt.style.use(Path(__file__).parent / "figures.mplstyle")


def save_films(block, block_vars, gallery_conf, **kwargs):
    """A film becomes a GIF, which needs no script and no file from elsewhere."""
    paths = []
    for film in block_vars["example_globals"].values():
        if isinstance(film, Animation) and plt.fignum_exists(film._fig.number):
            path = Path(next(block_vars["image_path_iterator"])).with_suffix(".gif")
            # A frame without a background would show the frames before it.
            film.save(path, writer=PillowWriter(fps=_FRAMES_PER_SECOND), dpi=80, savefig_kwargs={"facecolor": "white"})
            plt.close(film._fig)
            paths.append(str(path))
    return figure_rst(paths, gallery_conf["src_dir"])
