"""Problems on which a claim was false once."""

from claims.false_claims import Problem

# What was found once. The first group are the constructions of the first walk through the library: fused Gaussians far
# from their centre, b·Σβ left out of the gap, cosines that overflow, joint machines outside their set, float32 input.
FOUND = {
    "hard margin of samples that live with an engine": Problem(
        "hard SVC", kernel="Linear()", n=37, d=5, exponent=2.0, seed=1431, engine="opaque"
    ),
    "division by a norm that may be 0, logistic": Problem(
        "KernelMachineClassifier",
        {"loss": "logistic", "bias": True, "penalty": "norm"},
        kernel="laplacian",
        family="repeated rows",
        n=10,
        d=3,
        seed=102280,
        C=1e5,
        tol=0.1,
        size=1e-6,
        weights="repetitions",
        csr=True,
    ),
    "division by a norm that may be 0, huber": Problem(
        "KernelMachineRegressor",
        {"loss": "huber", "bias": True, "penalty": "norm"},
        kernel="homogeneous",
        family="constant columns",
        n=15,
        d=4,
        exponent=3.0,
        seed=174,
        C=1e6,
        tol=0.001,
        gamma=10.0,
        size=1e-6,
        dtype="f4",
        engine="blocks",
    ),
    "copies of wide weights in a ridge": Problem(
        "RLSRegressor", {"bias": False}, "chi2", "repeated rows", n=36, seed=3604, C=100.0, gamma=10.0, weights="wide"
    ),
    **{
        f"clusters 1e{k} apart": Problem("SVC", family="clusters", n=40, exponent=k, C=10.0, gamma=1.0)
        for k in (6.0, 7.0, 8.0, 15.0)
    },
    "rounding of a division by rho": Problem(
        "NuSVC",
        kernel="linear",
        family="clusters",
        n=14,
        d=1,
        exponent=4.0,
        seed=249110,
        C=0.01,
        tol=1e-8,
        gamma=0.1,
        size=0.001,
        n_classes=4,
        weights="wide",
    ),
    "unix seconds": Problem("SVC", family="time stamps", n=40, d=3, C=10.0, gamma=0.01),
    "unix seconds, least squares": Problem("RLSRegressor", family="time stamps", n=40, d=3, C=10.0, gamma=0.01),
    **{
        f"linear kernel, offset 1e{k}": Problem("SVC", kernel="linear", family="offset", n=40, d=3, exponent=k, C=10.0)
        for k in (4.0, 5.0, 6.0)
    },
    **{
        f"cosine at 1e±{10 * k:g}, {kind}": Problem(
            "SVC", kernel="cosine", family="huge or tiny", n=40, d=5, exponent=k, dtype=kind, seed=seed
        )
        for k, kind, seed in ((16.0, "f8", 0), (16.0, "f8", 1), (2.0, "f4", 0), (2.0, "f4", 1))
    },
    "cosine of float32, C 1e5": Problem("SVC", kernel="cosine", n=40, d=5, C=1e5, dtype="f4"),
    **{
        f"{way}, {kernel}, seed {seed}": Problem(
            "joint SVC", {"multiclass": way, **bias}, kernel, n=36, C=C, tol=1e-5, gamma=0.03, n_classes=4, seed=seed
        )
        for seed, (way, bias, kernel, C) in enumerate(
            (
                ("crammer-singer", {"bias": False}, "polynomial", 1e-3),
                ("crammer-singer", {}, "polynomial", 1e-2),
                ("crammer-singer", {"bias": False}, "laplacian", 1.0),
                ("weston-watkins", {}, "polynomial", 1e-2),
                ("weston-watkins", {}, "linear", 1.0),
            )
        )
    },
    **{
        f"float32 clusters 1e{k} apart": Problem(
            "SVC", family="clusters", n=40, d=5, exponent=k, gamma=0.2, C=10.0, dtype="f4"
        )
        for k in (2.0, 3.0, 3.5)
    },
    "squared loss, linear kernel, offset 1e13": Problem(
        "KernelMachineRegressor",
        {"loss": "squared", "bias": True},
        "linear",
        "offset",
        d=4,
        exponent=13.0,
        seed=58371,
        csr=True,
    ),
    "hard margin of sparse rows 1e11 apart": Problem(
        "hard SVC",
        {"bias": "regularized"},
        "shifted",
        "three outliers",
        n=37,
        exponent=11.0,
        seed=185670,
        tol=1e-7,
        weights="mild",
        csr=True,
    ),
    "both sums of a tube without width": Problem(
        "NuSVR",
        {"nu": 0.7},
        "scaled",
        "sparse with offset",
        n=25,
        d=5,
        exponent=6.0,
        seed=469983,
        C=1e5,
        tol=1e-5,
        size=1e-3,
        weights="wide",
        dtype="f4",
    ),
    "prediction of sparse rows 1e12 apart": Problem(
        "SVR",
        {"loss": "expectile", "bias": False},
        family="three outliers",
        n=39,
        d=4,
        exponent=12.0,
        seed=840804,
        C=1e4,
        tol=1e-4,
        gamma=10.0,
        csr=True,
    ),
    "least squares beside rows that repeat": Problem(
        "RLSRegressor",
        {"bias": False},
        "homogeneous",
        "sparse with offset",
        n=38,
        d=5,
        exponent=6.0,
        seed=843681,
        C=100.0,
        gamma=10.0,
        size=1e-3,
        weights="mild",
        dtype="f4",
        csr=True,
    ),
    "least squares of copies whose shares are rounded": Problem(
        "RLSRegressor",
        {"bias": False},
        "polynomial",
        "offset",
        n=18,
        d=4,
        exponent=9.0,
        seed=911140,
        C=1e3,
        tol=1e-5,
        size=1e3,
        dtype="f4",
    ),
    **{
        f"a float32 matrix plus a constant, {machine}": Problem(
            machine,
            {"bias": "regularized", **options},
            "precomputed",
            exponent=5.0,
            seed=seed,
            n=30,
            C=100.0,
            dtype="f4",
        )
        for machine, options, seed in (("SVC", {}, 572922), ("SVR", {"loss": "huber"}, 1), ("QuantileSVR", {}, 694576))
    },
    "gamma beyond float32": Problem(
        "RLSRegressorCV",
        kernel="polynomial",
        family="huge or tiny",
        n=28,
        exponent=8.0,
        seed=813565,
        C=1e-3,
        gamma=0.01,
        size=1e-6,
        weights="wide",
        dtype="f4",
    ),
    "an indefinite kernel whose diagonal bounds nothing": Problem(
        "RLSClassifierCV",
        kernel="sigmoid",
        family="repeated rows",
        n=25,
        d=5,
        exponent=8.0,
        seed=557835,
        C=1e5,
        gamma=0.1,
        n_classes=3,
        weights="wide",
    ),
    "cosines of float32 near one": Problem(
        "RLSRegressor",
        kernel="cosine",
        family="mixed units",
        exponent=13.0,
        seed=712275,
        C=1e6,
        size=1e-3,
        dtype="f4",
    ),
    "descent on an indefinite kernel": Problem(
        "PegasosSVC",
        {"bias": False},
        "sigmoid",
        "huge or tiny",
        n=30,
        exponent=5.0,
        seed=744070,
        C=1e3,
        gamma=0.1,
        weights="wide",
        dtype="f4",
    ),
    **{
        f"joint linear machine, {family} at 1e{k}": Problem(
            "LinearSVC",
            {"multiclass": "crammer_singer", "bias": False},
            "linear",
            family,
            exponent=k,
            n_classes=3,
            **rest,
        )
        for family, k, rest in (
            ("offset", 9.0, {"n": 15, "d": 1, "seed": 222071, "C": 0.1, "tol": 0.1, "dtype": "f4"}),
            ("time stamps", 14.0, {"n": 38, "seed": 845351, "C": 0.1, "tol": 1e-7}),
            ("constant columns", 15.0, {"d": 3, "seed": 484101, "C": 10.0, "tol": 1e-8, "weights": "repetitions"}),
        )
    },
    **{
        f"joint machine, sums of wide weights, seed {seed}": Problem(
            "joint SVC",
            {"multiclass": "weston-watkins", "bias": "regularized"},
            "linear",
            "huge or tiny",
            seed=seed,
            n_classes=3,
            weights="wide",
            **rest,
        )
        for seed, rest in (
            (995716, {"n": 27, "d": 4, "exponent": 7.0, "C": 1e4, "tol": 1e-8, "csr": True}),
            (692720, {"n": 14, "d": 5, "exponent": 3.0, "C": 100.0, "tol": 1e-6, "dtype": "f4"}),
        )
    },
    "a Newton direction that overflows": Problem(
        "NuSVC",
        {"nu": 0.6},
        "linear",
        "huge or tiny",
        n=34,
        d=1,
        exponent=15.0,
        seed=458330,
        tol=1e-4,
        n_classes=4,
        weights="repetitions",
    ),
    "copies of a tube that overlap beside 1e-160": Problem(
        "NuSVR",
        {"nu": 0.7},
        "Linear()",
        "huge or tiny",
        n=25,
        d=5,
        exponent=8.0,
        seed=804333,
        C=10.0,
        tol=1e-6,
        weights="wide",
    ),
    "copies of a tube that overlap a little": Problem(
        "NuSVR",
        {"nu": 0.3},
        "polynomial",
        "repeated rows",
        n=36,
        d=5,
        exponent=6.0,
        seed=392132,
        C=1e5,
        tol=0.01,
        gamma=10.0,
        size=1e-6,
        weights="mild",
    ),
    **{
        f"copies at their bounds with k = {k}": Problem(
            "SVC", options, "Linear()", "constant columns", n=n, exponent=e, seed=seed, C=C, weights=weights, **rest
        )
        for k, options, n, e, seed, C, weights, rest in (
            (
                "1e22",
                {"multiclass": "ovr", "classes": True},
                15,
                11.0,
                156443,
                1.0,
                "wide",
                {"n_classes": 4, "tol": 0.1},
            ),
            ("2e22", {"bias": False}, 11, 11.0, 208122, 1e6, "wide", {"tol": 1e-7}),
            ("1e30", {"bias": False, "classes": True}, 34, 15.0, 609956, 10.0, "mild", {}),
        )
    },
    "landmarks that nearly coincide": Problem(
        "NystromRLSClassifier",
        {"bias": False},
        "homogeneous",
        "near duplicates",
        d=5,
        exponent=5.0,
        seed=72635,
        C=1e-4,
        gamma=0.1,
        weights="mild",
        csr=True,
    ),
    "landmarks in two clusters": Problem(
        "NystromRLSClassifier",
        kernel="Linear()",
        family="clusters",
        n=11,
        d=3,
        exponent=2.0,
        seed=841954,
        C=1e-4,
        weights="wide",
        csr=True,
    ),
    **{
        f"copies of a joint machine, {bias}": Problem(
            "joint SVC",
            {"multiclass": multiclass, "bias": bias},
            "linear",
            "sparse with offset",
            n=n,
            d=d,
            exponent=exponent,
            seed=seed,
            C=C,
            tol=tol,
            n_classes=n_classes,
            weights=weights,
            dtype="f4",
        )
        for multiclass, bias, n, d, exponent, seed, C, tol, n_classes, weights in (
            ("crammer-singer", False, 45, 1, 11.0, 137, 1000.0, 1e-4, 4, "wide"),
            ("weston-watkins", "regularized", 37, 2, 4.0, 304233, 480.99656368365675, 3.7077397151647186e-7, 3, None),
        )
    },
    "rows of one class that share a coefficient beside a large ridge": Problem(
        "RLSClassifier", family="repeated rows", n=3, d=1, seed=6, C=0.1, weights="mild"
    ),
    "rows that share a coefficient at a λ of a path": Problem(
        "RLSClassifierCV", family="repeated rows", n=6, d=1, seed=1, C=0.01, weights="repetitions"
    ),
    "coefficients of which a hundred digits hold no exact sum": Problem(
        "SVC", {}, "polynomial", "constant columns", n=4, exponent=14.0, C=1e-4, gamma=10.0, dtype="f4"
    ),
    "a primal value below the dual one": Problem(
        "PegasosSVC",
        {"bias": False},
        "sigmoid",
        "huge or tiny",
        n=10,
        d=1,
        gamma=0.1,
        weights="wide",
        engine="blocks",
    ),
}
