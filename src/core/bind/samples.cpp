// Prepared samples and what is computed of their kernel matrix, as Python sees it (gram/blocks.hpp, solve/pairs.hpp).
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "algebra/rounding.hpp"
#include "bind/arguments.hpp"
#include "bind/pairs.hpp"
#include "gram/blocks.hpp"
#include "simd/dispatch.hpp"
#include "simd/level_entries.hpp"
#include "simd/padded.hpp"

namespace {

using Index = Vector<const std::int64_t>;

// Features, or stored entries per sample, from which a kernel value costs far more to compute than to read back.
constexpr std::int64_t kExpensiveFeatures = 100, kExpensiveEntries = 40;

// Samples laid out as the columns of blocks, for any number of calls.
struct Columns {
    virtual ~Columns() = default;
    std::int64_t n = 0;
};

// Prepared samples of either kind and precision, with the recipe's ending; they keep the arrays they were made of.
class Samples {
public:
    Samples(int ending, int n_endings, nb::handle numbers, int n_threads) : ending_(ending), n_threads_(n_threads) {
        if (ending < 0 || ending >= n_endings) refuse("ending", "is not one of the known endings");
        const auto given = vector<const double>(numbers, "numbers", mercer::kNumbers);
        std::copy_n(given.data(), mercer::kNumbers, numbers_);
    }
    virtual ~Samples() = default;
    virtual std::unique_ptr<Columns> columns(nb::handle which) = 0;
    virtual void add(nb::handle total, const Columns& columns, nb::handle which, nb::handle coefficients) = 0;
    virtual void add_two(nb::handle totals, const Columns& columns, nb::handle which, nb::handle coefficients) = 0;
    virtual void add_normal(nb::handle, const Columns&, nb::handle, nb::handle, nb::handle) {
        refuse("samples", "must be dense and float64 for add_normal");
    }
    virtual nb::object block(nb::handle which, const Columns& columns) = 0;
    virtual nb::object table(nb::handle rows, nb::handle which, std::int64_t room) = 0;
    virtual void square(nb::handle which, nb::handle out) = 0;
    virtual nb::tuple solve_pairs(nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle,
                                  nb::handle, nb::handle, nb::handle, bool, double, std::int64_t, double, int) {
        refuse("samples", "must be dense for solve_pairs");
    }
    virtual void add_pairs(nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, int) {
        refuse("samples", "must be dense for add_pairs");
    }
    virtual nb::tuple solve_sparse_pairs(nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle,
                                         nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, bool, bool, double,
                                         std::int64_t, double, int) {
        refuse("samples", "must be sparse and float64 for solve_sparse_pairs");
    }
    virtual nb::tuple solve_folds(nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle,
                                  nb::handle, nb::handle, nb::handle, nb::handle, bool, bool, double, std::int64_t,
                                  double, int) {
        refuse("samples", "must be dense, or sparse and float64, for solve_folds");
    }
    virtual bool dense() const { return false; }
    // Whether sums are in twice the precision, so that nothing cancels.
    virtual bool doubled() const { return false; }
    // Whether computing a value costs far more than reading one that was kept.
    virtual bool dear() const = 0;
    virtual nb::object dtype() const = 0;

protected:
    Index rows(nb::handle which, std::int64_t n) const {
        const auto index = vector<const std::int64_t>(which, "which");
        check_range(index.data(), index.shape(0), n, "which");
        return index;
    }
    mercer::Threads threads(Signals& signals) const { return {n_threads_, level_, signals.poll()}; }
    // kSums rows of so many elements.
    template <class Element>
    static auto two(nb::handle object, std::int64_t columns, const char* name) {
        nb::ndarray<Element, nb::ndim<2>, nb::c_contig, nb::device::cpu> rows;
        if (!nb::try_cast(object, rows, false)) refuse(name, "must be a C-contiguous two-dimensional float64 array");
        if (rows.shape(0) != mercer::kSums || static_cast<std::int64_t>(rows.shape(1)) != columns) {
            refuse(name, "must have two rows of " + std::to_string(columns));
        }
        check_alignment(rows, name);
        return rows;
    }
    void check_gaussian() const {
        if (ending_ != mercer::kGaussian) refuse("samples", "must be those of a Gaussian for add_two");
    }

    int ending_, n_threads_;
    double numbers_[mercer::kNumbers] = {};
    const mercer::Level& level_ = mercer::level();
};

// A matrix whose rows are `stride` elements apart and aligned, of which n x m are shown.
template <class T>
nb::object hand_over(std::unique_ptr<mercer::Padded<T>> data, std::int64_t n, std::int64_t m, std::int64_t stride) {
    T* values = data->data();
    const nb::capsule owner(data.release(), [](void* p) noexcept { delete static_cast<mercer::Padded<T>*>(p); });
    const std::size_t shape[2] = {static_cast<std::size_t>(n), static_cast<std::size_t>(m)};
    const std::int64_t strides[2] = {stride, 1};
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(values, 2, shape, owner, strides));
}

// A matrix to be written to, with contiguous rows and room for whole tiles.
template <class T>
auto room_for(nb::handle object, std::int64_t rows, std::int64_t columns) {
    nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out;
    if (!nb::try_cast(object, out, false)) {
        refuse("out", std::string("must be a C-contiguous two-dimensional ") + type_name<T>() + " array to write to");
    }
    check_alignment(out, "out");
    if (static_cast<std::int64_t>(out.shape(0)) < rows || static_cast<std::int64_t>(out.shape(1)) < columns) {
        refuse("out", "needs at least " + std::to_string(rows) + " rows of " + std::to_string(columns));
    }
    return out;
}

// Rows a power of two apart would share a few cache sets: 16 more elements avoid that.
std::int64_t row_stride(std::int64_t n) { return n + 16; }

template <class T>
class Dense final : public Samples {
public:
    using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

    Dense(Rows rows_, Vector<const T> norms, int ending, nb::handle numbers, int n_threads)
        : Samples(ending, mercer::dense_endings<T>, numbers, n_threads), rows_array_(rows_), norms_(norms) {
        samples_ = {rows_array_.data(), static_cast<std::int64_t>(rows_array_.shape(0)),
                    static_cast<std::int64_t>(rows_array_.shape(1)), norms_.data()};
    }

    std::unique_ptr<Columns> columns(nb::handle which) override {
        const Index index = rows(which, samples_.n);
        auto out = std::make_unique<Panels>();
        out->n = static_cast<std::int64_t>(index.shape(0));
        const std::int64_t padded = mercer::round_up(out->n, tiles_.columns);
        out->data = mercer::Padded<T>(padded * samples_.d);
        out->norms = mercer::Padded<T>(padded);
        out->d = samples_.d;
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::pack(samples_, index.data(), out->n, out->data.data(), out->norms.data(), threads(signals));
        return out;
    }

    void add(nb::handle total, const Columns& columns, nb::handle which, nb::handle coefficients) override {
        const mercer::Panels<T> panels = panels_of(columns);
        const Index index = rows(which, samples_.n);
        const auto coefficients_ = vector<const double>(coefficients, "coefficients", index.shape(0));
        const auto total_ = vector<double>(total, "total", static_cast<std::size_t>(panels.n));
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::sum_block(panels, samples_, index.data(), static_cast<std::int64_t>(index.shape(0)),
                          coefficients_.data(), ending_, numbers_, total_.data(), threads(signals));
    }

    void add_two(nb::handle totals, const Columns& columns, nb::handle which, nb::handle coefficients) override {
        check_gaussian();
        const mercer::Panels<T> panels = panels_of(columns);
        const Index index = rows(which, samples_.n);
        const auto m = static_cast<std::int64_t>(index.shape(0));
        const auto coefficients_ = two<const double>(coefficients, m, "coefficients");
        const auto totals_ = two<double>(totals, panels.n, "totals");
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::sum_two_blocks(panels, samples_, index.data(), m, coefficients_.data(), numbers_, totals_.data(),
                                 threads(signals));
    }

    void add_normal(nb::handle total, const Columns& columns, nb::handle which, nb::handle coefficients,
                    nb::handle weights) override {
        if constexpr (std::is_same_v<T, double>) {
            const mercer::Panels<T> panels = panels_of(columns);
            const Index index = rows(which, samples_.n);
            const auto coefficients_ = vector<const double>(coefficients, "coefficients", index.shape(0));
            const auto weights_ = vector<const double>(weights, "weights", static_cast<std::size_t>(panels.n));
            const auto total_ = vector<double>(total, "total", index.shape(0));
            Signals signals;
            const nb::gil_scoped_release unlocked;
            mercer::add_normal(panels, samples_, index.data(), static_cast<std::int64_t>(index.shape(0)),
                               coefficients_.data(), weights_.data(), ending_, numbers_, total_.data(),
                               threads(signals));
        } else {
            Samples::add_normal(total, columns, which, coefficients, weights);
        }
    }

    nb::object block(nb::handle which, const Columns& columns) override { return stored(which, columns, 0); }

    nb::object table(nb::handle rows, nb::handle which, std::int64_t room) override {
        return stored(rows, *columns(which), room);
    }

    void square(nb::handle which, nb::handle out) override {
        const auto laid_out = columns(which);
        const mercer::Panels<T> panels = panels_of(*laid_out);
        const Index index = rows(which, samples_.n);
        const auto room =
            room_for<T>(out, mercer::round_up(panels.n, tiles_.rows), mercer::round_up(panels.n, tiles_.columns));
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::store_square(panels, samples_, index.data(), ending_, numbers_, room.data(), room.stride(0),
                             threads(signals));
    }

    nb::tuple solve_pairs(nb::handle members, nb::handle starts, nb::handle blocks, nb::handle offsets,
                          nb::handle diagonal, nb::handle h, nb::handle beta, nb::handle lower, nb::handle upper,
                          nb::handle d, bool paired, double tol, std::int64_t max_steps, double max_seconds,
                          int n_threads) override {
        const PairLayout layout(members, starts, blocks, offsets, samples_.n);
        return ::solve_pairs(samples_, ending_, numbers_, layout, diagonal, h, beta, lower, upper, d, paired, tol,
                             max_steps, max_seconds, n_threads);
    }

    nb::tuple solve_folds(nb::handle members, nb::handle starts, nb::handle blocks, nb::handle offsets,
                          nb::handle diagonal, nb::handle p, nb::handle beta, nb::handle lower, nb::handle upper,
                          nb::handle d, nb::handle values, bool, bool paired, double tol, std::int64_t max_steps,
                          double max_seconds, int n_threads) override {
        const PairLayout layout(members, starts, blocks, offsets, samples_.n);
        const auto diagonal_ = vector<const double>(diagonal, "diagonal", static_cast<std::size_t>(samples_.n));
        return with_folds(layout, p, beta, lower, upper, d, values, paired, n_threads,
                          [&](const mercer::PairFolds& folds, mercer::SmoResult* results, const mercer::Threads& all) {
                              return mercer::solve_folds<T>({samples_, diagonal_.data(), ending_, numbers_},
                                                            layout.rows(), layout.pairs(), folds,
                                                            {tol, max_steps, max_seconds}, results, all);
                          });
    }

    void add_pairs(nb::handle members, nb::handle starts, nb::handle blocks, nb::handle offsets, nb::handle beta,
                   nb::handle total, int n_threads) override {
        const PairLayout layout(members, starts, blocks, offsets, samples_.n);
        ::add_pairs(samples_, ending_, numbers_, layout, beta, total, n_threads);
    }

    bool dense() const override { return true; }
    bool dear() const override { return samples_.d >= kExpensiveFeatures; }
    nb::object dtype() const override { return nb::module_::import_("numpy").attr("dtype")(type_name<T>()); }

private:
    struct Panels final : Columns {
        mercer::Padded<T> data, norms;
        std::int64_t d = 0;
    };

    // K[which, columns], and so many rows more that are not set.
    nb::object stored(nb::handle which, const Columns& columns, std::int64_t more) {
        if (more < 0) refuse("room", "must not be negative");
        const mercer::Panels<T> panels = panels_of(columns);
        const Index index = rows(which, samples_.n);
        const auto m = static_cast<std::int64_t>(index.shape(0));
        const std::int64_t stride = row_stride(mercer::round_up(panels.n, tiles_.columns));
        auto out = std::make_unique<mercer::Padded<T>>((mercer::round_up(m, tiles_.rows) + more) * stride);
        {
            Signals signals;
            const nb::gil_scoped_release unlocked;
            mercer::store_block(panels, samples_, index.data(), m, ending_, numbers_, out->data(), stride,
                                threads(signals));
        }
        return hand_over(std::move(out), m + more, panels.n, stride);
    }

    mercer::Panels<T> panels_of(const Columns& columns) const {
        const auto* panels = dynamic_cast<const Panels*>(&columns);
        if (panels == nullptr || panels->d != samples_.d) refuse("columns", "were made of another kind of samples");
        return {panels->data.data(), panels->norms.data(), panels->n, panels->d};
    }

    Rows rows_array_;
    Vector<const T> norms_;
    mercer::DenseSamples<T> samples_{};
    const mercer::Tiles<T>& tiles_ = mercer::tiles_of<T>(level_);
};

template <class T>
class Sparse final : public Samples {
public:
    Sparse(Vector<const T> values, Vector<const std::int32_t> indices, Index starts, Vector<const T> norms,
           Vector<const T> lows, std::int64_t d, int ending, nb::handle numbers, int n_threads)
        : Samples(ending, mercer::kEndings, numbers, n_threads),
          own_(std::make_shared<Own>(
              Own{std::move(values), std::move(indices), std::move(starts), std::move(norms), std::move(lows)})) {
        samples_ = {own_->values.data(),
                    own_->indices.data(),
                    own_->starts.data(),
                    static_cast<std::int64_t>(own_->starts.shape(0)) - 1,
                    d,
                    own_->norms.data(),
                    own_->lows.is_valid() ? own_->lows.data() : nullptr};
    }

    std::unique_ptr<Columns> columns(nb::handle which) override {
        const Index index = rows(which, samples_.n);
        auto out = std::make_unique<Picked>();
        out->n = static_cast<std::int64_t>(index.shape(0));
        out->which.assign(index.data(), index.data() + index.shape(0));
        out->samples = samples_;
        out->own = own_;
        return out;
    }

    void add(nb::handle total, const Columns& columns, nb::handle which, nb::handle coefficients) override {
        const Picked& picked = picked_of(columns);
        const Index index = rows(which, samples_.n);
        const auto coefficients_ = vector<const double>(coefficients, "coefficients", index.shape(0));
        const auto total_ = vector<double>(total, "total", static_cast<std::size_t>(picked.n));
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::sum_block(picked.view(), samples_, index.data(), static_cast<std::int64_t>(index.shape(0)),
                          coefficients_.data(), ending_, numbers_, total_.data(), threads(signals));
    }

    void add_two(nb::handle totals, const Columns& columns, nb::handle which, nb::handle coefficients) override {
        check_gaussian();
        const Picked& picked = picked_of(columns);
        const Index index = rows(which, samples_.n);
        const auto m = static_cast<std::int64_t>(index.shape(0));
        const auto coefficients_ = two<const double>(coefficients, m, "coefficients");
        const auto totals_ = two<double>(totals, picked.n, "totals");
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::sum_two_blocks(picked.view(), samples_, index.data(), m, coefficients_.data(), numbers_,
                                 totals_.data(), threads(signals));
    }

    nb::object block(nb::handle which, const Columns& columns) override { return stored(which, columns, 0).attr("T"); }

    nb::object table(nb::handle rows, nb::handle which, std::int64_t room) override {
        return stored(which, *columns(rows), room);
    }

    void square(nb::handle which, nb::handle out) override {
        const Index index = rows(which, samples_.n);
        const auto n = static_cast<std::int64_t>(index.shape(0));
        const auto room = room_for<T>(out, n, mercer::round_up(n, mercer::strips_of<T>(level_).width));
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::store_square(mercer::SparseColumns<T>{samples_, index.data(), n}, samples_, ending_, numbers_,
                             room.data(), room.stride(0), threads(signals));
    }

    nb::tuple solve_sparse_pairs(nb::handle members, nb::handle starts, nb::handle blocks, nb::handle offsets,
                                 nb::handle diagonal, nb::handle h, nb::handle beta, nb::handle lower, nb::handle upper,
                                 nb::handle d, nb::handle products, bool single, bool paired, double tol,
                                 std::int64_t max_steps, double max_seconds, int n_threads) override {
        if constexpr (std::is_same_v<T, double>) {
            const PairLayout layout(members, starts, blocks, offsets, samples_.n);
            return ::solve_sparse_pairs(samples_, ending_, numbers_, layout, diagonal, h, beta, lower, upper, d,
                                        products, single, paired, tol, max_steps, max_seconds, n_threads);
        } else {
            return Samples::solve_sparse_pairs(members, starts, blocks, offsets, diagonal, h, beta, lower, upper, d,
                                               products, single, paired, tol, max_steps, max_seconds, n_threads);
        }
    }

    nb::tuple solve_folds(nb::handle members, nb::handle starts, nb::handle blocks, nb::handle offsets,
                          nb::handle diagonal, nb::handle p, nb::handle beta, nb::handle lower, nb::handle upper,
                          nb::handle d, nb::handle values, bool single, bool paired, double tol, std::int64_t max_steps,
                          double max_seconds, int n_threads) override {
        if constexpr (std::is_same_v<T, double>) {
            if (ending_ == mercer::kLaplacian || samples_.lows != nullptr) {
                refuse("samples", "must have inner products for solve_folds");
            }
            const PairLayout layout(members, starts, blocks, offsets, samples_.n);
            const auto diagonal_ = vector<const double>(diagonal, "diagonal", static_cast<std::size_t>(samples_.n));
            return with_folds(
                layout, p, beta, lower, upper, d, values, paired, n_threads,
                [&](const mercer::PairFolds& folds, mercer::SmoResult* results, const mercer::Threads& all) {
                    const auto solve = single ? mercer::solve_sparse_folds<float> : mercer::solve_sparse_folds<double>;
                    return solve({samples_, diagonal_.data(), ending_, numbers_}, layout.rows(), layout.pairs(), folds,
                                 {tol, max_steps, max_seconds}, results, all);
                });
        } else {
            return Samples::solve_folds(members, starts, blocks, offsets, diagonal, p, beta, lower, upper, d, values,
                                        single, paired, tol, max_steps, max_seconds, n_threads);
        }
    }

    bool doubled() const override { return samples_.lows != nullptr; }
    bool dear() const override { return samples_.starts[samples_.n] >= kExpensiveEntries * samples_.n; }
    nb::object dtype() const override { return nb::module_::import_("numpy").attr("dtype")(type_name<T>()); }

private:
    struct Own {
        Vector<const T> values;
        Vector<const std::int32_t> indices;
        Index starts;
        Vector<const T> norms, lows;
    };
    struct Picked final : Columns {
        std::vector<std::int64_t> which;
        mercer::SparseSamples<T> samples{};
        std::shared_ptr<Own> own;
        mercer::SparseColumns<T> view() const { return {samples, which.data(), n}; }
    };

    // The core stores a row per column sample: K[columns, which], and so many rows more that are not set.
    nb::object stored(nb::handle which, const Columns& columns, std::int64_t more) {
        if (more < 0) refuse("room", "must not be negative");
        const Picked& picked = picked_of(columns);
        const Index index = rows(which, samples_.n);
        const auto m = static_cast<std::int64_t>(index.shape(0));
        const std::int64_t stride = row_stride(mercer::round_up(m, mercer::strips_of<T>(level_).width));
        auto out = std::make_unique<mercer::Padded<T>>((picked.n + more) * stride);
        {
            Signals signals;
            const nb::gil_scoped_release unlocked;
            mercer::store_block(picked.view(), samples_, index.data(), m, ending_, numbers_, out->data(), stride,
                                threads(signals));
        }
        return hand_over(std::move(out), picked.n + more, m, stride);
    }

    const Picked& picked_of(const Columns& columns) const {
        const auto* picked = dynamic_cast<const Picked*>(&columns);
        const bool same = picked != nullptr && picked->samples.d == samples_.d &&
                          (picked->samples.lows == nullptr) == (samples_.lows == nullptr);
        if (!same) {
            refuse("columns", "were made of another kind of samples");
        }
        return *picked;
    }

    std::shared_ptr<Own> own_;
    mercer::SparseSamples<T> samples_{};
};

std::unique_ptr<Samples> dense_samples(nb::handle rows, nb::handle norms, int ending, nb::handle numbers,
                                       int n_threads) {
    std::unique_ptr<Samples> out;
    with_matrix<float, double>(rows, "rows", [&](const auto& x) {
        using T = Element<decltype(x)>;
        typename Dense<T>::Rows contiguous;
        if (!nb::try_cast(rows, contiguous, false)) refuse("rows", "must be C-contiguous");
        out = std::make_unique<Dense<T>>(contiguous, vector<const T>(norms, "norms", x.shape(0)), ending, numbers,
                                         n_threads);
        return 0;
    });
    return out;
}

template <class T>
std::unique_ptr<Samples> sparse_of(const Vector<const T>& values, nb::handle indices, nb::handle starts,
                                   nb::handle norms, nb::handle lows, std::int64_t d, int ending, nb::handle numbers,
                                   int n_threads) {
    const std::size_t stored = values.shape(0);
    const auto indices_ = vector<const std::int32_t>(indices, "indices", stored);
    const auto starts_ = vector<const std::int64_t>(starts, "starts");
    if (starts_.shape(0) == 0) refuse("starts", "must have one element more than there are samples");
    const std::size_t n = starts_.shape(0) - 1;
    const auto norms_ = vector<const T>(norms, "norms", n);
    Vector<const T> lows_;
    if (!lows.is_none()) lows_ = vector<const T>(lows, "lows", n);
    if (!mercer::is_indptr(starts_.data(), static_cast<std::int64_t>(n), static_cast<std::int64_t>(stored))) {
        refuse("starts", "must not decrease and must stay between 0 and the number of stored elements");
    }
    if (!mercer::all_indices(indices_.data(), stored, d)) refuse("indices", "holds a feature outside of the range");
    return std::make_unique<Sparse<T>>(values, indices_, starts_, norms_, lows_, d, ending, numbers, n_threads);
}

std::unique_ptr<Samples> sparse_samples(nb::handle values, nb::handle indices, nb::handle starts, nb::handle norms,
                                        std::int64_t d, int ending, nb::handle numbers, int n_threads) {
    std::unique_ptr<Samples> out;
    with_vector<float, double>(values, "values", "float32 or float64", [&](const auto& values_) {
        out = sparse_of<Element<decltype(values_)>>(values_, indices, starts, norms, nb::none(), d, ending, numbers,
                                                    n_threads);
    });
    return out;
}

std::unique_ptr<Samples> exact_sparse_samples(nb::handle values, nb::handle indices, nb::handle starts,
                                              nb::handle norms, nb::handle lows, std::int64_t d, int ending,
                                              nb::handle numbers, int n_threads) {
    if (lows.is_none()) refuse("lows", "must be given");
    const auto values_ = vector<const double>(values, "values");
    return sparse_of<double>(values_, indices, starts, norms, lows, d, ending, numbers, n_threads);
}

nb::tuple exact_norms(nb::handle values, nb::handle starts, bool l1, int n_threads) {
    const auto values_ = vector<const double>(values, "values");
    const auto starts_ = vector<const std::int64_t>(starts, "starts");
    if (starts_.shape(0) == 0) refuse("starts", "must have one element more than there are samples");
    const std::size_t n = starts_.shape(0) - 1;
    if (!mercer::is_indptr(starts_.data(), static_cast<std::int64_t>(n), static_cast<std::int64_t>(values_.shape(0)))) {
        refuse("starts", "must not decrease and must stay between 0 and the number of stored elements");
    }
    check_threads(n_threads);
    std::vector<double> norms(n), lows(n);
    {
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::exact_norms(values_.data(), starts_.data(), static_cast<std::int64_t>(n), l1, norms.data(), lows.data(),
                            {n_threads, mercer::level(), signals.poll()});
    }
    return nb::make_tuple(as_array(std::move(norms)), as_array(std::move(lows)));
}

}  // namespace

void bind_samples(nb::module_& m) {
    nb::class_<Columns>(m, "Columns", "Samples laid out as columns.").def_ro("n", &Columns::n);
    nb::class_<Samples>(m, "Samples", "Samples prepared for a recipe.")
        .def("columns", &Samples::columns, "which"_a.none(), "Lay out some of them as columns.")
        .def("add", &Samples::add, "total"_a.none(), "columns"_a, "which"_a.none(), "coefficients"_a.none(),
             "total += K[columns, which] @ coefficients, without keeping K.")
        .def("add_two", &Samples::add_two, "totals"_a.none(), "columns"_a, "which"_a.none(),
             "coefficients"_a.none(), "The same for two rows of coefficients at once, if k is Gaussian.")
        .def("add_normal", &Samples::add_normal, "total"_a.none(), "columns"_a, "which"_a.none(),
             "coefficients"_a.none(), "weights"_a.none(),
             "total += K[which, columns] (weights * (K[columns, which] @ coefficients)), K evaluated once.")
        .def("block", &Samples::block, "which"_a.none(), "columns"_a, "K[which, columns].")
        .def_prop_ro("dear", &Samples::dear, "Whether computing a value costs far more than reading one that was kept.")
        .def_prop_ro("dtype", &Samples::dtype)
        .def("table", &Samples::table, "rows"_a.none(), "which"_a.none(), "room"_a = 0,
             "K[rows, which] with contiguous rows, and room for so many more rows.")
        .def_prop_ro("doubled", &Samples::doubled)
        .def_prop_ro("dense", &Samples::dense, "Whether every entry is stored.")
        .def("solve_pairs", &Samples::solve_pairs, "members"_a.none(), "starts"_a.none(), "blocks"_a.none(),
             "offsets"_a.none(), "diagonal"_a.none(), "h"_a.none(), "beta"_a.none(), "lower"_a.none(), "upper"_a.none(),
             "d"_a.none(), "paired"_a, "tol"_a, "max_steps"_a, "max_seconds"_a, "n_threads"_a,
             "Solve a problem on each pair of blocks; changes beta in place and returns the steps and why each ended.")
        .def("solve_sparse_pairs", &Samples::solve_sparse_pairs, "members"_a.none(), "starts"_a.none(),
             "blocks"_a.none(), "offsets"_a.none(), "diagonal"_a.none(), "h"_a.none(), "beta"_a.none(),
             "lower"_a.none(), "upper"_a.none(), "d"_a.none(), "products"_a.none(), "single"_a, "paired"_a, "tol"_a,
             "max_steps"_a, "max_seconds"_a, "n_threads"_a)
        .def("solve_folds", &Samples::solve_folds, "members"_a.none(), "starts"_a.none(), "blocks"_a.none(),
             "offsets"_a.none(), "diagonal"_a.none(), "p"_a.none(), "beta"_a.none(), "lower"_a.none(),
             "upper"_a.none(), "d"_a.none(), "values"_a.none(), "single"_a, "paired"_a, "tol"_a, "max_steps"_a,
             "max_seconds"_a, "n_threads"_a,
             "Solve problems on each pair that differ in bounds; returns why each ended, and how many values that took.")
        .def("add_pairs", &Samples::add_pairs, "members"_a.none(), "starts"_a.none(), "blocks"_a.none(),
             "offsets"_a.none(), "beta"_a.none(), "total"_a.none(), "n_threads"_a,
             "total += K beta on each pair of blocks.")
        .def("square", &Samples::square, "which"_a.none(), "out"_a.none(), "out = K[which, which], exactly symmetric.");
    m.def("dense_samples", &dense_samples, "rows"_a.none(), "norms"_a.none(), "ending"_a, "numbers"_a.none(),
          "n_threads"_a, "Samples that share the memory of `rows` and `norms`.");
    m.def("sparse_samples", &sparse_samples, "values"_a.none(), "indices"_a.none(), "starts"_a.none(), "norms"_a.none(),
          "d"_a, "ending"_a, "numbers"_a.none(), "n_threads"_a, "Samples that share the memory of CSR arrays.");
    m.def("exact_sparse_samples", &exact_sparse_samples, "values"_a.none(), "indices"_a.none(), "starts"_a.none(),
          "norms"_a.none(), "lows"_a.none(), "d"_a, "ending"_a, "numbers"_a.none(), "n_threads"_a,
          "The same for samples neither centred nor scaled, whose values are summed in doubled precision.");
    m.def("exact_norms", &exact_norms, "values"_a.none(), "starts"_a.none(), "l1"_a, "n_threads"_a,
          "Half of each sample's squared length, or the sum of its absolute values, as norm + low.");
}
