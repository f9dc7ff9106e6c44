// What one instruction set offers: a table of the loops that level.cpp compiles once per level.
#pragma once

#include <cstdint>

namespace mercer {

// Arrays the core owns are aligned to this and padded to a multiple of kPad elements, so that the loops need no edge.
inline constexpr int kAlign = 64;
inline constexpr int kPad = 16;

template <class T>
struct Extremes {
    T max_up;           // largest h + up
    T min_low;          // smallest h + low
    std::int64_t i_up;  // lowest index of max_up, -1 where up excludes all
};

// h, up, low, diag and floor are the core's own padded arrays; rows of K are the user's, of exactly n elements.
// up is 0 where beta may rise and -inf elsewhere, low is 0 where beta may fall and +inf elsewhere.
template <class T>
struct SmoPasses {
    // h -= step (ki - kj), or step ki where kj is null, and the extremes of the result.
    void (*update)(T* h, const T* ki, const T* kj, T step, const T* up, const T* low, std::int64_t n, Extremes<T>* out);
    void (*extremes)(const T* h, const T* up, const T* low, std::int64_t n, Extremes<T>* out);
    // Lowest index of the largest (h_i - h_j)^2 / eta > 0, eta = max(diag_i + diag_j - 2 k_ij, floor_i + floor_j).
    std::int64_t (*partner)(const T* h, const T* ki, const T* low, const T* diag, const T* floor, T h_i, T diag_i,
                            T floor_i, std::int64_t n);
    // Lowest index of the largest v^2 / max(diag, floor) > 0, v = max(h + up, -(h + low)).
    std::int64_t (*coordinate)(const T* h, const T* up, const T* low, const T* diag, const T* floor, std::int64_t n);
    // acc -= factor row, in float64.
    void (*subtract)(double* acc, const T* row, double factor, std::int64_t n);
};

// For the working set of a joint multi-class machine: a row of values per class, `stride` elements apart, and a column
// per sample.
template <class T>
struct JointPasses {
    // to[c] += factors[c] (row + shift) for m classes c; only `row` is the user's, of exactly n elements.
    void (*add)(T* const* to, const T* factors, std::int64_t m, const T* row, T shift, std::int64_t n);
    // The largest h + up and the smallest h + low over the classes, for each sample.
    void (*ends)(const T* h, const T* up, const T* low, std::int64_t stride, std::int64_t classes, std::int64_t n,
                 T* top, T* bottom);
};

// How inner products or distances become kernel values; the order of the tables below. The last two are for dense
// float64 samples as they are, neither centred nor scaled: their values come from differences and cannot cancel.
enum Ending {
    kIdentity,
    kGaussian,
    kPolynomial,
    kSigmoid,
    kLaplacian,
    kEndings,
    kGaussianOfDifferences = kEndings,
    kLaplacianOfDifferences,
    kDenseEndings
};
// The endings that dense samples of type T have.
template <class T>
inline constexpr int dense_endings = sizeof(T) == sizeof(double) ? kDenseEndings : kEndings;
inline constexpr int kNumbers = 4;    // numbers of a recipe: scale, gamma, coef0, degree
inline constexpr int kMaxPanel = 32;  // widest panel of any level
inline constexpr int kSums = 2;       // sums of the same Gaussian values that are made together

// One panel of columns against `groups` groups of rows, all packed feature by feature.
template <class T>
struct TileRun {
    const T* rows;
    const T* panel;
    const T* row_norms;
    const T* column_norms;
    std::int64_t d, groups;
    T numbers[kNumbers];
};

template <class T>
struct Tiles {
    int rows, columns;  // of one tile: rows per group, columns per panel
    void (*store[kDenseEndings])(const TileRun<T>& run, T* out, std::int64_t stride);
    void (*sum[kDenseEndings])(const TileRun<T>& run, const T* coefficients, double* total);
    // Gaussian; coefficients of one sum are `stride` elements apart from the next, totals kMaxPanel.
    void (*sum_two)(const TileRun<T>& run, const T* coefficients, std::int64_t stride, double* total);
    // One row, as it is, against `groups` panels, which lie one after another.
    void (*store_row[kDenseEndings])(const TileRun<T>& run, T* out);
};

// Adds one panel's share of K W K'c: with u = w K'c for the panel's columns, total[row][lane] += K u, where columns are
// dealt to lanes. `kept` is room for the panel's kernel values, rows x columns. Coefficients of padding rows and
// weights of padding columns are zero.
struct NormalTiles {
    int lanes;
    void (*add[kDenseEndings])(const TileRun<double>& run, const double* coefficients, const double* weights, double* kept,
                          double* total);
};

// One panel's share of a product with a symmetric matrix: with the values k of these rows and the panel's columns,
// down[column] += sum over rows of their coefficients times k, and across[row][lane] += sum over columns, which are
// dealt to lanes, of theirs. Coefficients of padding are zero.
struct SquareTiles {
    int lanes;
    void (*add[kDenseEndings])(const TileRun<double>& run, const double* row_coefficients,
                               const double* column_coefficients, double* down, double* across);
};

// A strip of rows laid out [feature][row] against n sparse samples. Where `places` is given, only features that these
// rows have are laid out: feature k begins at element places[k], and the others share a row of zeros at 0.
template <class T>
struct StripRun {
    const T* strip;
    const T* strip_norms;
    const T* strip_lows;  // for exact values: what the norms leave out, so that norm + low is twice as precise
    const std::int32_t* places;
    const T* sums;  // with `places`: what `keep` kept of the strip's earlier entries, or null
    const T* values;
    const std::int32_t* indices;
    const std::int64_t* starts;
    const T* norms;
    const T* lows;  // for exact values
    const std::int64_t* samples;
    std::int64_t n;
    T numbers[kNumbers];
};

template <class T>
struct StripLoops {
    void (*store[kEndings])(const StripRun<T>& run, T* out, std::int64_t stride);
    void (*sum[kEndings])(const StripRun<T>& run, const T* coefficients, double* total);
    void (*sum_two)(const StripRun<T>& run, const T* coefficients, std::int64_t stride, double* total,
                      std::int64_t total_stride);  // Gaussian
};

template <class T>
struct Strips {
    int width;          // rows of a strip
    int sums;           // elements per sample that `keep` keeps
    StripLoops<T> all;  // for strips of all features
    StripLoops<T> mapped;
    void (*keep[2])(const StripRun<T>& run, T* sums);  // of inner products, and for absolute distances
};

// Rows of a factor that are packed together: a multiple of the rows and the columns of every level's tile.
inline constexpr int kRowChunk = 96;
inline constexpr int kMaxTileRows = 12;  // most rows of a tile of any level

// Groups hold `rows` rows as [k][row], panels `columns` rows or right-hand sides as [k][column] (cholesky_tiles.hpp).
template <class T>
struct CholeskyTiles {
    int rows, columns;
    // Factors the symmetric block in lt[k][i], i >= k, in place; n is a multiple of `rows`, stride >= n + columns.
    // `groups` becomes the factor's rows, n steps apart, with reciprocals on the diagonal. Returns the first pivot that
    // is not positive, or -1.
    std::int64_t (*factor_block)(T* lt, std::int64_t stride, std::int64_t n, T* groups);
    // panel = L^-1 panel for the `depth` rows of groups.
    void (*solve_panel)(const T* groups, std::int64_t depth, T* panel);
    // c -= group panel' for `count` panels side by side.
    void (*rank_update)(const T* group, const T* panels, std::int64_t depth, std::int64_t count, T* c,
                        std::int64_t stride);
    // kRowChunk rows of panels as groups.
    void (*regroup)(const T* panels, std::int64_t depth, T* groups);
    void (*transpose)(const T* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, T* to,
                      std::int64_t to_stride);
    // to[r] -= sum over k of a[r row + k step] panel[k], one tile; row or step is 1.
    void (*subtract_products)(const T* a, std::int64_t row, std::int64_t step, const T* panel, std::int64_t depth,
                              T* to);
    // One tile with the triangle of a group, and with its transpose.
    void (*solve_tile)(const T* triangle, T* to);
    void (*solve_tile_transposed)(const T* triangle, T* to);
};

// Rows of a linear machine's data against its weight vector, sums in float64.
template <class T>
struct LinearPasses {
    double (*dot)(const T* x, const double* w, std::int64_t n);
    void (*add)(double* w, const T* x, double factor, std::int64_t n);  // w += factor x
};

// Rows of kernel values combined into kCombined outputs at a time, whose sums fit the registers of every level.
inline constexpr int kCombined = 6;
template <class T>
struct CombinePasses {
    // out[o][i] += sum over rows j of coefficients[j][o] values[j][i], in float64, for kCombined outputs o, n columns i.
    void (*combine)(const T* values, std::int64_t stride, std::int64_t rows, const double* coefficients, std::int64_t n,
                    double* out, std::int64_t out_stride);
};

// Rows of kernel values of the free variables of an active set (solve/active_set.hpp).
struct HomotopyPasses {
    // to_first += sum over rows j of first[j] rows[j], and to_second with second, n columns each.
    void (*add_rows)(const double* const* rows, std::int64_t count, const double* first, const double* second,
                     std::int64_t n, double* to_first, double* to_second);
};

// For Shapley values of product kernels (explain/shapley.hpp): rows against vectors, one of these per lane.
enum Rate { kSquareRate, kAbsoluteRate, kChi2Rate, kDotRate, kRates };
inline constexpr int kMaxSeries = 17;  // coefficients of a power series
// Gauss-Legendre nodes in [0, 1]. Nodes above 1/2 are stored once more as w = 2t - 1, each followed by its square, both
// repeated for every lane.
struct ShapleyRule {
    std::int64_t size;
    const double* nodes;
    const double* weights;
    const double* upper;
    double growth;  // of the product that is integrated, up to which this rule errs by less than rounding
};
struct ShapleyRun {
    const double* rows;        // n_rows x d
    const double* background;  // m x d
    const double* weights;     // of the background
    const double* vectors;     // [feature][lane]
    const double* rates;       // of the exponents of 2, [rate][feature]
    const std::int64_t* starts;  // features starts[p] to starts[p + 1] are player p's: their factors are one
    bool used[kRates];         // which rates are not all zero
    bool exponents;            // whether any is
    double series[kMaxSeries];
    std::int64_t order;
    const ShapleyRule* rules;
    const std::int64_t* rule_with;  // [n]: the first rule that has n nodes or more
    std::int64_t first_rule;        // of those that could be enough without being exact
    const std::int32_t* differing;  // how many players of a row and a background row differ, rows this far apart
    std::int64_t differing_stride;
    std::int64_t n_rows, m, d, players;
    double* room;             // shapley_room elements
    std::int64_t* different;  // players elements
};

// Whether a row and a background row differ in some feature of a player.
static inline bool shapley_differ(const double* x, const double* z, const std::int64_t* starts, std::int64_t player) {
    for (std::int64_t l = starts[player]; l < starts[player + 1]; ++l) {
        if (x[l] != z[l]) return true;
    }
    return false;
}

// Number of nodes that integrate the polynomial in t exactly, for two rows with `different` players. Without exponents
// every player's series begins with 1, so that t comes only with y, in powers below the order.
static inline std::int64_t shapley_nodes(std::int64_t different, std::int64_t order, bool exponents) {
    return ((exponents || different < order ? different : order) + 1) / 2;
}

// Players whose factors are multiplied into one polynomial, and nodes that a pass takes at once: 0 and three pairs.
inline constexpr int kShapleyGroup = 4, kShapleyNodes = 7;
static inline std::int64_t shapley_padded(std::int64_t players) {
    return (players + kShapleyGroup - 1) / kShapleyGroup * kShapleyGroup;
}

// The room of a pass with this many rows and lanes: the factors of the rows and their sums, the factors of a background
// row, and then, with power series as factors, four arrays of these; else what shapley_groups.hpp needs.
static inline std::int64_t shapley_room(std::int64_t n_rows, std::int64_t players, std::int64_t order, std::int64_t lanes) {
    const std::int64_t size = order + 1;
    return lanes * shapley_padded(players) * (n_rows * (size + 1) + size + (size > 1 ? 4 * size : 11));
}

struct ShapleyPasses {
    int lanes;
    // values[row][player][lane] += the value of each player; players are `stride` elements apart.
    void (*add)(const ShapleyRun& run, double* values, std::int64_t stride);
};

// A block of rows against one of kDoubledBlock columns, laid out [feature][column], in twice the precision.
inline constexpr int kDoubledBlock = 64;
enum DoubledInner { kDoubledProduct, kDoubledSquares, kDoubledAbsolute, kDoubledInners };
struct DoubledRun {
    const double* first_row;
    const double* columns;
    const double* row_coefficients;  // rows x outputs
    const double* coefficients;      // [output][column]
    std::int64_t rows, d, outputs;
    bool radial;                    // k = scale exp(-gamma t) + constant, else scale (gamma t + coef0)^degree + constant
    double gamma, coef0, scale, constant;
    double farthest;                // a t beyond which exp(-gamma t) is no number of float64
    std::int64_t degree;
};

struct DoubledPasses {
    int lanes;
    // high + low = sum over rows and columns of c_row c_column k, for each output; room for 2 outputs x lanes.
    void (*block[kDoubledInners])(const DoubledRun& run, double* room, double* high, double* low);
};

struct Level {
    const char* name;
    SmoPasses<float> smo_float;
    SmoPasses<double> smo_double;
    Tiles<float> tiles_float;
    Tiles<double> tiles_double;
    Strips<float> strips_float;
    Strips<double> strips_double;
    Strips<double> strips_exact;
    void (*exact_norm)(const double* values, std::int64_t n, bool l1, double* high, double* low);
    CholeskyTiles<float> cholesky_float;
    CholeskyTiles<double> cholesky_double;
    JointPasses<float> joint_float;
    JointPasses<double> joint_double;
    NormalTiles normal;
    SquareTiles square;
    LinearPasses<float> linear_float;
    LinearPasses<double> linear_double;
    CombinePasses<float> combine_float;
    CombinePasses<double> combine_double;
    HomotopyPasses homotopy;
    ShapleyPasses shapley;
    DoubledPasses doubled;
};

extern const Level level_plain;
#if defined(MERCER_X86)
extern const Level level_avx2;
extern const Level level_avx512;
#elif defined(MERCER_ARM64)
extern const Level level_neon;
#endif

}  // namespace mercer
