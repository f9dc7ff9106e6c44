"""The compiled loops: arrays in, arrays out (src/core)."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

def levels() -> list[str]:
    """Instruction sets usable here, fastest last."""

def level() -> str:
    """The instruction set in use; the environment variable MERCER_SIMD forces one."""

def get_num_threads() -> int:
    """Threads a call may use when the user named no number."""

def thread_limit() -> int:
    """The same limit if one was set, else 0."""

def set_num_threads(n: int) -> None:
    """Limit the threads of calls for which the user named no number."""

class Cancelled(BaseException):
    """Another thread of the same fit was interrupted or failed."""

class StopFlag:
    """Ends the calls of all threads that watch it."""

    def raise_(self) -> None:
        """End those calls, and all later ones, with Cancelled."""

    def watch(self) -> None:
        """Let this thread watch this flag, and no other, from now on."""

class OutOfTime(TimeoutError):
    """The time limit has passed."""

class TimeLimit:
    """A context in which this thread's calls end with OutOfTime after so many seconds."""

    def __init__(self, seconds: float) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...

def check_stop() -> None:
    """Raise Cancelled or OutOfTime if this thread is to stop."""

def hash_rows(X: NDArray[Any], n_threads: int) -> NDArray[np.uint64]:
    """A 64-bit hash of each row's non-zero (column, value) pairs; X is float32 or float64, of any strides."""

def hash_rows_csr(
    data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], n_threads: int
) -> NDArray[np.uint64]:
    """The same for a CSR matrix with sorted, unique column indices."""

def order_by(keys: NDArray[np.uint64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions sorted by key, then by `second`; keys are hashes."""

def equal_rows_csr(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
) -> NDArray[np.uint8]:
    """Whether the rows left[k] and right[k] store the same entries."""

def smo(
    K: NDArray[Any],
    h: NDArray[np.float64],
    beta: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    d: NDArray[np.float64],
    group: NDArray[np.int32],
    tol: float,
    max_steps: int,
    max_seconds: float,
    twins: bool = False,
) -> tuple[int, float, Literal["converged", "max_steps", "max_seconds", "stalled", "unbounded", "nonfinite"]]:
    """Maximise p'b − ½b'(K + diag d)b over the box, group sums kept; beta is changed in place.

    h = p − Kb − d∘b is the gradient at beta on entry and is not modified. K is float32 or float64 with
    contiguous rows; group −1 has no equality. With twins, variables i and n + i belong to row i of K. Returns the steps
    made, the violation reached (NaN if "nonfinite", when beta is left as it was) and why it ended.
    """

def solve_stored(
    K: NDArray[Any],
    which: NDArray[np.intp],
    p: NDArray[np.float64],
    beta: NDArray[np.float64],
    u: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    d: NDArray[np.float64],
    group: NDArray[np.int32],
    tol: float,
    max_steps: int,
    max_seconds: float,
) -> tuple[int, float, Literal["converged", "max_steps", "max_seconds", "stalled", "unbounded", "nonfinite"]]:
    """`smo` on a matrix that is stored for many problems: K has a column for every variable, and variable i the row
    which[i]; p and u = Kβ stand in for h. beta and u, whose change is summed in float64, are changed in place."""

def joint(
    K: NDArray[Any],
    excess: NDArray[np.float64],
    beta: NDArray[np.float64],
    label: NDArray[np.intp],
    bound: NDArray[np.float64],
    shared: bool,
    shift: float,
    tol: float,
    max_steps: int,
    max_seconds: float,
) -> tuple[int, float, Literal["converged", "max_steps", "max_seconds", "stalled", "nonfinite"]]:
    """Ascend the dual of a joint multi-class machine on one block of samples; beta is changed in place.

    excess = f + 1 − [class is the label] at beta, samples × classes. `shared`: the multipliers of a sample together
    stay below its bound (Crammer–Singer), else each does (Weston–Watkins). Returns the steps made, the violation last
    seen (NaN if "nonfinite", when beta is left as it was) and why it ended.
    """

def prepare(
    X: NDArray[Any], centre: NDArray[np.float64], scale: float, rows: NDArray[Any], norms: NDArray[Any], n_threads: int
) -> None:
    """rows = (X − centre) · scale in their own precision, and norms = half their squared lengths."""

def prepare_sparse(
    X: NDArray[Any], centre: NDArray[np.float64], scale: float, l1: bool, single: bool, n_threads: int
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int64], NDArray[Any]]:
    """The entries of (X − centre) · scale that are not zero: values, indices and starts of CSR in float32 if `single`.

    And the samples' norms: half their squared lengths, or the sums of absolute values where `l1`.
    """

def cholesky(A: NDArray[Any], n_threads: int) -> int:
    """Factor A = LLᵀ in place: −1, or the index of the first pivot that is not positive, when A is of no use any more.

    A is float32 or float64 with contiguous rows at any distance; only its lower triangle is read and written. The
    result does not depend on n_threads.
    """

def cholesky_solve(L: NDArray[Any], B: NDArray[Any], n_threads: int) -> None:
    """B = (LLᵀ)⁻¹B in place; B is C-contiguous and of L's type, and only the lower triangle of L is read."""

def add_table(
    total: NDArray[np.float64],
    table: NDArray[Any],
    coefficients: NDArray[np.float64],
    n_threads: int,
    rows: NDArray[np.intp] | None = None,
) -> None:
    """total += table[rows] @ coefficients, in float64; the table is float32 or float64 with contiguous rows."""

def transpose(source: NDArray[Any], to: NDArray[Any], n_threads: int) -> None:
    """to = source.T; both of the same type, with contiguous rows."""

def copy_entries(
    table: NDArray[Any],
    rows: NDArray[np.intp],
    sources: NDArray[np.intp],
    out: NDArray[Any],
    columns: NDArray[np.intp],
    n_threads: int,
) -> None:
    """out[:, columns] = table[rows][:, sources]; both of the same type, with contiguous rows."""

class Combinations:
    """Runs of vectors that serve the same few outputs, with their coefficients."""

    def __init__(self) -> None: ...
    def append(self, which: tuple[int, int], outputs: NDArray[np.intp], coefficients: NDArray[np.float64]) -> None:
        """The vectors from the first to before the second of `which` serve these outputs."""

    def add(self, total: NDArray[np.float64], table: NDArray[Any], n_threads: int) -> None:
        """total += table' coefficients, in float64; the table has a row for each vector."""

class Columns:
    """Samples laid out to be met as columns, any number of times."""

    n: int

class Samples:
    """Samples prepared for a recipe; they keep the arrays they were made of."""

    def columns(self, which: NDArray[np.intp]) -> Columns:
        """Lay out some of them as columns."""

    def add(
        self, total: NDArray[np.float64], columns: Columns, which: NDArray[np.intp], coefficients: NDArray[np.float64]
    ) -> None:
        """total += K[columns, which] @ coefficients, without keeping K; sums in float64."""

    def add_two(
        self, totals: NDArray[np.float64], columns: Columns, which: NDArray[np.intp], coefficients: NDArray[np.float64]
    ) -> None:
        """The same for two rows of coefficients at once, where k is Gaussian and not of differences."""

    def add_normal(
        self,
        total: NDArray[np.float64],
        columns: Columns,
        which: NDArray[np.intp],
        coefficients: NDArray[np.float64],
        weights: NDArray[np.float64],
    ) -> None:
        """total += K[which, columns] @ (weights · (K[columns, which] @ coefficients)), K evaluated once.

        For dense float64 samples only; the result does not depend on the number of threads.
        """

    def block(self, which: NDArray[np.intp], columns: Columns) -> NDArray[Any]:
        """K[which, columns] in the samples' precision."""

    def table(self, rows: NDArray[np.intp], which: NDArray[np.intp], room: int = 0) -> NDArray[Any]:
        """K[rows, which] in the samples' precision, with contiguous rows, and so many more rows that are not set."""

    def square(self, which: NDArray[np.intp], out: NDArray[Any]) -> None:
        """Write K[which, which], exactly symmetric, into the corner of `out`, which has room for whole tiles."""

    def solve_pairs(
        self,
        members: NDArray[np.intp],
        starts: NDArray[np.intp],
        blocks: NDArray[np.intp],
        offsets: NDArray[np.intp],
        diagonal: NDArray[np.float64],
        h: NDArray[np.float64],
        beta: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        d: NDArray[np.float64],
        paired: bool,
        tol: float,
        max_steps: int,
        max_seconds: float,
        n_threads: int,
    ) -> tuple[list[int], list[str], int]:
        """Solve a problem on each pair of blocks; beta is changed in place.

        Returns the steps of each and why it ended, as in `smo`, and how many kernel values that took.

        Block k holds the samples members[starts[k]:starts[k + 1]]; problem t is on blocks[2t] and then blocks[2t + 1],
        and its variables begin at offsets[t]. For dense samples only.
        """

    def solve_sparse_pairs(
        self,
        members: NDArray[np.intp],
        starts: NDArray[np.intp],
        blocks: NDArray[np.intp],
        offsets: NDArray[np.intp],
        diagonal: NDArray[np.float64],
        h: NDArray[np.float64],
        beta: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        d: NDArray[np.float64],
        products: NDArray[np.float64],
        single: bool,
        paired: bool,
        tol: float,
        max_steps: int,
        max_seconds: float,
        n_threads: int,
    ) -> tuple[list[int], list[str], int]:
        """The same for sparse float64 samples; products becomes K beta on each pair.

        Steps are taken in float32 where `single`. Not for the Laplacian.
        """

    def solve_folds(
        self,
        members: NDArray[np.intp],
        starts: NDArray[np.intp],
        blocks: NDArray[np.intp],
        offsets: NDArray[np.intp],
        diagonal: NDArray[np.float64],
        p: NDArray[np.float64],
        beta: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        d: NDArray[np.float64],
        values: NDArray[np.float64],
        single: bool,
        paired: bool,
        tol: float,
        max_steps: int,
        max_seconds: float,
        n_threads: int,
    ) -> tuple[list[str], int]:
        """Solve several problems on each pair of blocks, which differ in bounds only and start from what these leave of
        beta: lower, upper and values have the variables of all pairs once for each.

        values becomes K beta + b, from the values that steps took, which are float32 where sparse samples are to be
        `single`. Returns why each fold of each pair ended, as in `smo`, and how many kernel values that took.
        """

    def add_pairs(
        self,
        members: NDArray[np.intp],
        starts: NDArray[np.intp],
        blocks: NDArray[np.intp],
        offsets: NDArray[np.intp],
        beta: NDArray[np.float64],
        total: NDArray[np.float64],
        n_threads: int,
    ) -> None:
        """total += K beta on each pair of blocks, from values computed for this sum; for dense samples only."""

    @property
    def dense(self) -> bool:
        """Whether every entry is stored."""

    @property
    def doubled(self) -> bool:
        """Whether sums of sparse samples are in twice the precision, so that nothing cancels."""

    @property
    def dear(self) -> bool:
        """Whether computing a value costs far more than reading one that was kept."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

def dense_samples(
    rows: NDArray[Any], norms: NDArray[Any], ending: int, numbers: NDArray[np.float64], n_threads: int
) -> Samples:
    """Samples that share the memory of `rows` and `norms`."""

def sparse_samples(
    values: NDArray[Any],
    indices: NDArray[np.int32],
    starts: NDArray[np.int64],
    norms: NDArray[Any],
    d: int,
    ending: int,
    numbers: NDArray[np.float64],
    n_threads: int,
) -> Samples:
    """Samples that share the memory of CSR arrays."""

def exact_sparse_samples(
    values: NDArray[np.float64],
    indices: NDArray[np.int32],
    starts: NDArray[np.int64],
    norms: NDArray[np.float64],
    lows: NDArray[np.float64],
    d: int,
    ending: int,
    numbers: NDArray[np.float64],
    n_threads: int,
) -> Samples:
    """The same for samples neither centred nor scaled, whose values are summed in doubled precision."""

def exact_norms(
    values: NDArray[np.float64], starts: NDArray[np.int64], l1: bool, n_threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Half of each sample's squared length, or the sum of its absolute values, as norm + low."""

class Active:
    """A problem at a point that moves, seen through its active variables.

    It shares the memory of the float arrays; h = p − u[row] − dβ.
    """

    def __init__(
        self,
        p: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        d: NDArray[np.float64],
        row: NDArray[np.int64],
        group: NDArray[np.int32],
        groups: int,
        beta: NDArray[np.float64],
        u: NDArray[np.float64],
        n_threads: int = 1,
    ) -> None: ...
    def choose(self, active: NDArray[np.intp]) -> None:
        """Which variables are active from now on."""

    def ends(self) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """The violation, and per group the largest h that may grow and the smallest that may shrink."""

    def working_set(
        self, top: NDArray[np.float64], bottom: NDArray[np.float64], kept: NDArray[np.intp], size: int
    ) -> NDArray[np.intp]:
        """The worst violators besides those kept, by the rule of mercer.problems.working_set, between these ends."""

    def survivors(self, top: NDArray[np.float64], bottom: NDArray[np.float64]) -> NDArray[np.intp]:
        """The active variables that are free or could still be chosen, between these ends."""

def pegasos_dense(
    X: NDArray[Any],
    y: NDArray[np.float64],
    draws: NDArray[np.int64],
    lam: float,
    t: int,
    project: bool,
    norm2: float,
    theta: NDArray[np.float64],
    total: NDArray[np.float64],
    counts: NDArray[np.int64] | None,
) -> tuple[int, float, float, float]:
    """Steps t + 1, … of stochastic subgradient descent on C-contiguous rows, one for each draw.

    theta, and total, the sum of theta / t, are changed in place; they have an element more than X has columns where
    every row is followed by a constant 1. Violations are added to counts. Returns the steps made, the factor by which
    projections have shrunk theta, the sum of that factor over t, and |theta|², which is right if it was on entry and
    project is true.
    """

def pegasos_csr(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    d: int,
    y: NDArray[np.float64],
    draws: NDArray[np.int64],
    lam: float,
    t: int,
    project: bool,
    norm2: float,
    theta: NDArray[np.float64],
    total: NDArray[np.float64],
    counts: NDArray[np.int64] | None,
) -> tuple[int, float, float, float]:
    """The same on a CSR matrix of d columns; a step costs what its row has entries."""

def pegasos_kernel(
    rows: NDArray[np.float64],
    slot: NDArray[np.int64],
    shift: float,
    u: NDArray[np.float64],
    y: NDArray[np.float64],
    draws: NDArray[np.int64],
    lam: float,
    t: int,
    project: bool,
    norm2: float,
    theta: NDArray[np.float64],
    total: NDArray[np.float64],
    counts: NDArray[np.int64] | None,
) -> tuple[int, float, float, float]:
    """The same on rows of a kernel matrix: row i is rows[slot[i]], and missing where slot[i] is negative.

    theta are coefficients, u = K theta is kept up to date. Stops before a step that needs a missing row.
    """

def random_bits(seed: int, stream: int, first: int, count: int) -> NDArray[np.uint64]:
    """Numbers first, first + 1, … of a stream of random 64-bit numbers; the same on every platform."""

def draw_rows(seed: int, stream: int, first: int, count: int, cumulative: NDArray[np.float64]) -> NDArray[np.int64]:
    """Random rows: each is the first whose cumulative weight exceeds a uniform number times the total weight."""

class LinearRows:
    """The rows of a linear machine's data, dense or CSR; they keep the arrays they were made of."""

    n: int
    d: int

    def product(self, w: NDArray[np.float64], shift: float, out: NDArray[np.float64]) -> None:
        """out = Xw + shift."""

    def transposed(self, c: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """out = X'c; rows whose c is 0 are skipped. The result does not depend on the number of threads."""

    def doubled_product(self, hi: NDArray[np.float64], lo: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """out = X(hi + lo), summed in twice the precision and rounded once."""

    def doubled_transposed(self, c: NDArray[np.float64], hi: NDArray[np.float64], lo: NDArray[np.float64]) -> None:
        """hi + lo = X'c in twice the precision."""

    def outer(self, which: NDArray[np.int64], c: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """The lower triangle of out = Σ c z z' over the rows named, z = (x, 1)."""

    def lengths(self, out: NDArray[np.float64]) -> None:
        """The squared lengths of the rows."""

    def descend(
        self,
        p: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        d: NDArray[np.float64],
        epsilon: NDArray[np.float64],
        lengths: NDArray[np.float64],
        bias: float,
        beta: NDArray[np.float64],
        w: NDArray[np.float64],
        b: NDArray[np.float64],
        value: float,
        hold: bool,
        seed: NDArray[np.uint64],
        tol: float,
        gap: float,
        max_epochs: int,
        max_seconds: float,
        shrinking: bool,
    ) -> tuple[int, float, float, Literal["converged", "max_epochs", "max_seconds", "unsettled"]]:
        """Dual coordinate descent; beta, w, b and seed are changed in place.

        Ends when no gradient over all rows is above tol and their shares of the gap add up to no more than `gap` of the
        dual value. `value` is that of the dual at the start without what the bias takes. A bias of infinity asks for a
        free one. That needs `hold` (b follows the passes, not each step), sparse rows, and boxes with zero at one end;
        "unsettled" means that b was not found so. Returns the passes taken, violation, gap, and why it ended.
        """

    def descend_joint(
        self,
        y: NDArray[np.int64],
        C: NDArray[np.float64],
        lengths: NDArray[np.float64],
        bias: float,
        beta: NDArray[np.float64],
        w: NDArray[np.float64],
        w_bias: NDArray[np.float64],
        seed: NDArray[np.uint64],
        tol: float,
        gap: float,
        max_epochs: int,
        max_seconds: float,
    ) -> tuple[int, float, float, Literal["converged", "max_epochs", "max_seconds"]]:
        """The same for Crammer and Singer's joint machine; beta and w are flat, the classes side by side."""

def linear_findings(
    p: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    d: NDArray[np.float64],
    epsilon: NDArray[np.float64],
    f: NDArray[np.float64],
    error: NDArray[np.float64],
    beta: NDArray[np.float64],
) -> tuple[float, float, float, int, float, float, float, float, float]:
    """What a linear certificate consists of: losses, gap shares, Σβ, the worst sample, how far β is outside its box,
    the largest wishes away from zero and towards it, the largest and smallest gradient that could be followed.

    f may be wrong by `error`: shares and residuals are the largest that this allows."""

class Respondents:
    """How samples respond to outputs f: t = the point of [lower, upper] nearest to shrunk(q − f, epsilon)·inverse."""

    def __init__(
        self,
        q: NDArray[np.float64],
        inverse: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
        epsilon: NDArray[np.float64],
        n_threads: int,
    ) -> None: ...
    def respond(
        self, p: NDArray[np.float64], d: NDArray[np.float64], f: NDArray[np.float64], t: NDArray[np.float64]
    ) -> tuple[float, float, float]:
        """Fills t; Σ t, the losses with p and d, and the shares of the duality gap."""

    def along(self, f: NDArray[np.float64], move: NDArray[np.float64], step: float) -> float:
        """Σ t·move at f + step·move."""

def dense_rows(X: NDArray[Any], n_threads: int) -> LinearRows:
    """Rows that share the memory of X."""

def csr_rows(
    data: NDArray[Any], indices: NDArray[Any], starts: NDArray[Any], ends: NDArray[Any], d: int, n_threads: int
) -> LinearRows:
    """Any rows of CSR arrays, whose memory they share; indices are int32, starts and ends int64."""

class Text:
    """LIBSVM or SVMlight text, cut into blocks of lines and counted; `rows` and `entries` are upper bounds."""

    rows: int
    entries: int

    def __init__(self, bytes: NDArray[np.uint8], n_threads: int) -> None: ...
    def parse(
        self,
        labels: NDArray[np.float64],
        starts: NDArray[np.int64],
        queries: NDArray[np.int64],
        indices: NDArray[np.int32],
        values: NDArray[np.float64],
        n_threads: int,
    ) -> tuple[int, int, int, int, int, tuple[int, int, str] | None]:
        """Fill the arrays: rows, entries, least and largest index, rows with a qid, (line, column, what) if wrong."""

def dual_findings(
    p: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    d: NDArray[np.float64],
    row: NDArray[np.int64],
    group: NDArray[np.int32],
    totals: NDArray[np.float64],
    beta: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    u: NDArray[np.float64],
    error: NDArray[np.float64],
) -> tuple[Any, ...]:
    """What the certificate of a dual problem consists of, where each u may be wrong by its error.

    The losses, the largest and without errors; gap shares; the worst variable; the violation; how far β is outside its
    box; the largest wishes away from zero and towards it; how far a group's sum can be off, and the sum of these times
    |b|; the sums β'u, p'β, β'dβ and |β|'(|p| + |u|); how far the first can be off; and the tuple of b.
    """

def is_sound(
    p: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    d: NDArray[np.float64],
    row: NDArray[np.int64],
    group: NDArray[np.int32],
    totals: NDArray[np.float64],
) -> bool:
    """Whether the arrays of a dual problem agree with each other, and hold numbers that they may hold."""

def by_rows(
    data: NDArray[np.float64], rows: NDArray[np.int64], ends: NDArray[np.int64], n_rows: int
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Data, columns and row ends of the numbers that are not zero, given one column after another.

    Those of the same cell are added up.
    """

def status_by_rows(
    beta: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    rows: NDArray[np.int64],
    ends: NDArray[np.int64],
    n_rows: int,
    which: NDArray[np.int64],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """The same of the rows `which`, with 1 for each cell that has a variable strictly inside its box, and 2 where all
    that are not zero lie at a bound."""

def take_rows(
    ends: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The row ends of some rows, which entries they have, and the row of each entry."""

def pair_findings(
    offsets: NDArray[np.int64],
    p: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    d: NDArray[np.float64],
    u: NDArray[np.float64],
    error: NDArray[np.float64],
    beta: NDArray[np.float64],
    paired: bool,
    n_threads: int,
) -> NDArray[np.float64]:
    """What the certificate of each problem (row) consists of, whose variables are those from one offset to the next.

    Losses, gap shares, Σβ, the worst variable, how far β is outside its box, the largest wishes away from zero and
    towards it, the largest and smallest gradient that could be followed, b where `paired`, the sums β'u, p'β, β'dβ,
    and how far the first of these can be off.
    """

def shapley_add(
    values: NDArray[np.float64],
    rows: NDArray[np.float64],
    background: NDArray[np.float64],
    weights: NDArray[np.float64],
    vectors: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    rates: NDArray[np.float64],
    polynomial: NDArray[np.float64],
    n_threads: int,
) -> None:
    """Add the Shapley values of Σ_i coefficients_i k(x, vectors_i) at rows, of shape (rows, outputs, features).

    k is a product over the features (mercer/kernels/terms.py): `rates` has its four rows of exponents, `polynomial` the
    coefficients of the powers of the inner product. The result does not depend on n_threads.
    """
