// Bindings for blocks, sums and products of the kernel matrix of prepared samples (gram/blocks.hpp).
#include "bind/samples.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "algebra/rounding.hpp"
#include "simd/padded.hpp"

namespace {

using Index = Vector<const std::int64_t>;

// Features, or stored entries per sample, from which a kernel value costs far more to compute than to read back.
constexpr std::int64_t kExpensiveFeatures = 100, kExpensiveEntries = 40;

// Dense samples laid out as columns, in memory of their own.
template <class T>
struct PackedColumns {
    mercer::Padded<T> data, norms;
    std::int64_t d = 0;
};

// Sparse ones stay where they are.
template <class T>
struct PickedColumns {
    std::vector<std::int64_t> which;
    mercer::SparseSamples<T> samples;
    std::shared_ptr<const void> kept;
};

// Samples laid out as the columns of blocks, for any number of calls.
struct Columns {
    std::int64_t n = 0;
    std::variant<PackedColumns<float>, PackedColumns<double>, PickedColumns<float>, PickedColumns<double>> any;
};

[[noreturn]] void refuse_columns() { refuse("columns", "were made of another kind of samples"); }

// The columns as calls with these samples want them.
template <class T>
mercer::Panels<T> view(const Columns& columns, const mercer::DenseSamples<T>& samples) {
    const auto* packed = std::get_if<PackedColumns<T>>(&columns.any);
    if (packed == nullptr || packed->d != samples.d) refuse_columns();
    return {packed->data.data(), packed->norms.data(), columns.n, packed->d};
}

template <class T>
mercer::SparseColumns<T> view(const Columns& columns, const mercer::SparseSamples<T>& samples) {
    const auto* picked = std::get_if<PickedColumns<T>>(&columns.any);
    const bool same = picked != nullptr && picked->samples.d == samples.d &&
                      (picked->samples.lows == nullptr) == (samples.lows == nullptr);
    if (!same) refuse_columns();
    return {picked->samples, picked->which.data(), columns.n};
}

// Size of the block that the core writes for m samples against n columns, in whole tiles: a row per sample if they are
// dense, a row per column if they are sparse.
struct Extent {
    std::int64_t rows, columns;
};

template <class T>
Extent extent_of(const mercer::DenseSamples<T>&, std::int64_t m, std::int64_t n) {
    const mercer::Tiles<T>& tiles = mercer::tiles_of<T>(mercer::level());
    return {mercer::round_up(m, tiles.rows), mercer::round_up(n, tiles.columns)};
}

template <class T>
Extent extent_of(const mercer::SparseSamples<T>&, std::int64_t m, std::int64_t n) {
    return {n, mercer::round_up(m, mercer::strips_of<T>(mercer::level()).width)};
}

// Rows a power of two apart would share a few cache sets: 16 more elements avoid that.
std::int64_t row_stride(std::int64_t n) { return n + 16; }

template <class Kind>
Index rows_of(const Kind& samples, AnyArray which) {
    const auto index = vector<const std::int64_t>(which, "which");
    check_range(index.data(), index.shape(0), samples.n, "which");
    return index;
}

std::int64_t size_of(const Index& index) { return static_cast<std::int64_t>(index.shape(0)); }

mercer::Threads threads_of(const Samples& self, Signals& signals) {
    return {self.n_threads, mercer::level(), signals.poll()};
}

// A matrix whose rows are `stride` elements apart and aligned, of which n x m are shown.
template <class T>
ArrayOfAnyType hand_over(std::unique_ptr<mercer::Padded<T>> data, std::int64_t n, std::int64_t m, std::int64_t stride) {
    T* values = data->data();
    const nb::capsule owner(data.release(), [](void* p) noexcept { delete static_cast<mercer::Padded<T>*>(p); });
    const std::size_t shape[2] = {static_cast<std::size_t>(n), static_cast<std::size_t>(m)};
    const std::int64_t strides[2] = {stride, 1};
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(values, 2, shape, owner, strides));
}

// A matrix to be written to, with contiguous rows and room for whole tiles.
template <class T>
auto room_for(AnyArray object, const Extent& extent) {
    nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out;
    if (!nb::try_cast(object, out, false)) {
        refuse("out", std::string("must be a C-contiguous two-dimensional ") + type_name<T>() + " array to write to");
    }
    check_alignment(out, "out");
    if (static_cast<std::int64_t>(out.shape(0)) < extent.rows ||
        static_cast<std::int64_t>(out.shape(1)) < extent.columns) {
        refuse("out", "needs at least " + std::to_string(extent.rows) + " rows of " + std::to_string(extent.columns));
    }
    return out;
}

// kSums rows of `columns` elements.
template <class Element>
auto two_rows(AnyArray object, std::int64_t columns, const char* name) {
    nb::ndarray<Element, nb::ndim<2>, nb::c_contig, nb::device::cpu> rows;
    if (!nb::try_cast(object, rows, false)) refuse(name, "must be a C-contiguous two-dimensional float64 array");
    if (rows.shape(0) != mercer::kSums || static_cast<std::int64_t>(rows.shape(1)) != columns) {
        refuse(name, "must have two rows of " + std::to_string(columns));
    }
    check_alignment(rows, name);
    return rows;
}

template <class T>
std::unique_ptr<Columns> columns_of(const Samples& self, const mercer::DenseSamples<T>& samples, const Index& which) {
    auto out = std::make_unique<Columns>(Columns{size_of(which), PackedColumns<T>{}});
    auto& packed = std::get<PackedColumns<T>>(out->any);
    const std::int64_t padded = extent_of(samples, 0, out->n).columns;
    packed.data = mercer::Padded<T>(padded * samples.d);
    packed.norms = mercer::Padded<T>(padded);
    packed.d = samples.d;
    Signals signals;
    const nb::gil_scoped_release unlocked;
    mercer::pack(samples, which.data(), out->n, packed.data.data(), packed.norms.data(), threads_of(self, signals));
    return out;
}

template <class T>
std::unique_ptr<Columns> columns_of(const Samples& self, const mercer::SparseSamples<T>& samples, const Index& which) {
    std::vector<std::int64_t> copy(which.data(), which.data() + which.shape(0));
    return std::make_unique<Columns>(Columns{size_of(which), PickedColumns<T>{std::move(copy), samples, self.kept}});
}

std::unique_ptr<Columns> columns(const Samples& self, AnyArray which) {
    return std::visit([&](const auto& samples) { return columns_of(self, samples, rows_of(samples, which)); },
                      self.any);
}

void add(const Samples& self, AnyArray total, const Columns& columns, AnyArray which, AnyArray coefficients) {
    std::visit(
        [&](const auto& samples) {
            const auto columns_ = view(columns, samples);
            const Index index = rows_of(samples, which);
            const auto coefficients_ = vector<const double>(coefficients, "coefficients", index.shape(0));
            const auto total_ = vector<double>(total, "total", static_cast<std::size_t>(columns.n));
            Signals signals;
            const nb::gil_scoped_release unlocked;
            mercer::sum_block(columns_, samples, index.data(), size_of(index), coefficients_.data(), self.ending,
                              self.numbers, total_.data(), threads_of(self, signals));
        },
        self.any);
}

void add_two(const Samples& self, AnyArray totals, const Columns& columns, AnyArray which,
             AnyArray coefficients) {
    if (self.ending != mercer::kGaussian) refuse("samples", "must be those of a Gaussian for add_two");
    std::visit(
        [&](const auto& samples) {
            const auto columns_ = view(columns, samples);
            const Index index = rows_of(samples, which);
            const auto coefficients_ = two_rows<const double>(coefficients, size_of(index), "coefficients");
            const auto totals_ = two_rows<double>(totals, columns.n, "totals");
            Signals signals;
            const nb::gil_scoped_release unlocked;
            mercer::sum_two_blocks(columns_, samples, index.data(), size_of(index), coefficients_.data(), self.numbers,
                                   totals_.data(), threads_of(self, signals));
        },
        self.any);
}

void add_several(const Samples& self, AnyArray totals, const Columns& columns, AnyArray which, AnyArray coefficients) {
    std::visit(
        [&](const auto& samples) {
            const auto columns_ = view(columns, samples);
            const Index index = rows_of(samples, which);
            nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> coefficients_;
            if (!nb::try_cast(coefficients, coefficients_, false) || coefficients_.shape(1) != index.shape(0)) {
                refuse("coefficients", "must be a C-contiguous float64 matrix with a column for each sample");
            }
            check_alignment(coefficients_, "coefficients");
            nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> totals_;
            if (!nb::try_cast(totals, totals_, false) || totals_.shape(0) != coefficients_.shape(0) ||
                static_cast<std::int64_t>(totals_.shape(1)) != columns.n) {
                refuse("totals", "must be a C-contiguous float64 matrix with a row for each sum");
            }
            check_alignment(totals_, "totals");
            Signals signals;
            const nb::gil_scoped_release unlocked;
            mercer::sum_several_blocks(columns_, samples, index.data(), size_of(index), coefficients_.data(),
                                       static_cast<std::int64_t>(coefficients_.shape(0)), self.ending, self.numbers,
                                       totals_.data(), threads_of(self, signals));
        },
        self.any);
}

void add_normal(const Samples& self, AnyArray total, const Columns& columns, AnyArray which,
                AnyArray coefficients, AnyArray weights) {
    const auto* samples = std::get_if<mercer::DenseSamples<double>>(&self.any);
    if (samples == nullptr) refuse("samples", "must be dense and float64 for add_normal");
    const mercer::Panels<double> panels = view(columns, *samples);
    const Index index = rows_of(*samples, which);
    const auto coefficients_ = vector<const double>(coefficients, "coefficients", index.shape(0));
    const auto weights_ = vector<const double>(weights, "weights", static_cast<std::size_t>(columns.n));
    const auto total_ = vector<double>(total, "total", index.shape(0));
    Signals signals;
    const nb::gil_scoped_release unlocked;
    mercer::add_normal(panels, *samples, index.data(), size_of(index), coefficients_.data(), weights_.data(),
                       self.ending, self.numbers, total_.data(), threads_of(self, signals));
}

void add_square(const Samples& self, AnyArray total, AnyArray which, AnyArray coefficients) {
    const auto* samples = std::get_if<mercer::DenseSamples<double>>(&self.any);
    if (samples == nullptr) refuse("samples", "must be dense and float64 for add_square");
    const Index index = rows_of(*samples, which);
    const auto coefficients_ = vector<const double>(coefficients, "coefficients", index.shape(0));
    const auto total_ = vector<double>(total, "total", index.shape(0));
    Signals signals;
    const nb::gil_scoped_release unlocked;
    mercer::sum_square(*samples, index.data(), size_of(index), coefficients_.data(), self.ending, self.numbers,
                       total_.data(), threads_of(self, signals));
}

// The block of K between `which` and the columns as the core writes it, and `more` rows that are not set.
template <class Kind>
ArrayOfAnyType stored(const Samples& self, const Kind& samples, AnyArray which, const Columns& columns,
                  std::int64_t more) {
    using T = ValueOf<Kind>;
    if (more < 0) refuse("room", "must not be negative");
    const auto columns_ = view(columns, samples);
    const Index index = rows_of(samples, which);
    const std::int64_t m = size_of(index);
    const Extent extent = extent_of(samples, m, columns.n);
    const std::int64_t stride = row_stride(extent.columns);
    auto out = std::make_unique<mercer::Padded<T>>((extent.rows + more) * stride);
    {
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::store_block(columns_, samples, index.data(), m, self.ending, self.numbers, out->data(), stride,
                            threads_of(self, signals));
    }
    const auto [rows, width] = is_dense<Kind> ? std::pair(m, columns.n) : std::pair(columns.n, m);
    return hand_over(std::move(out), rows + more, width, stride);
}

ArrayOfAnyType block(const Samples& self, AnyArray which, const Columns& columns) {
    return std::visit(
        [&]<class Kind>(const Kind& samples) {
            const nb::object out = stored(self, samples, which, columns, 0);
            return is_dense<Kind> ? out : nb::object(out.attr("T"));
        },
        self.any);
}

ArrayOfAnyType table(const Samples& self, AnyArray rows, AnyArray which, std::int64_t room) {
    return std::visit(
        [&]<class Kind>(const Kind& samples) {
            return is_dense<Kind> ? stored(self, samples, rows, *columns(self, which), room)
                                  : stored(self, samples, which, *columns(self, rows), room);
        },
        self.any);
}

void square(const Samples& self, AnyArray which, AnyArray out) {
    std::visit(
        [&]<class Kind>(const Kind& samples) {
            const Index index = rows_of(samples, which);
            const auto laid_out = columns_of(self, samples, index);
            const auto columns_ = view(*laid_out, samples);
            const auto room = room_for<ValueOf<Kind>>(out, extent_of(samples, laid_out->n, laid_out->n));
            Signals signals;
            const nb::gil_scoped_release unlocked;
            const mercer::Threads threads = threads_of(self, signals);
            if constexpr (is_dense<Kind>) {
                mercer::store_square(columns_, samples, index.data(), self.ending, self.numbers, room.data(),
                                     room.stride(0), threads);
            } else {
                mercer::store_square(columns_, samples, self.ending, self.numbers, room.data(), room.stride(0),
                                     threads);
            }
        },
        self.any);
}

// Whether sums are in twice the precision, so that nothing cancels.
bool doubled(const Samples& self) {
    const auto* samples = std::get_if<mercer::SparseSamples<double>>(&self.any);
    return samples != nullptr && samples->lows != nullptr;
}

bool dense(const Samples& self) {
    return std::visit([]<class Kind>(const Kind&) { return is_dense<Kind>; }, self.any);
}

bool expensive(const Samples& self) {
    return std::visit(
        []<class Kind>(const Kind& samples) {
            if constexpr (is_dense<Kind>) return samples.d >= kExpensiveFeatures;
            else return samples.starts[samples.n] >= kExpensiveEntries * samples.n;
        },
        self.any);
}

nb::object dtype(const Samples& self) {
    const char* name = std::visit([]<class Kind>(const Kind&) { return type_name<ValueOf<Kind>>(); }, self.any);
    return nb::module_::import_("numpy").attr("dtype")(name);
}

}  // namespace

void bind_samples(nb::module_& m) {
    nb::class_<Columns>(m, "Columns", "Samples laid out as columns.").def_ro("n", &Columns::n);
    nb::class_<Samples> samples(m, "Samples", "Samples prepared for a recipe.");
    samples.def("columns", &columns, "which"_a, "Lay out some of them as columns.")
        .def("add", &add, "total"_a, "columns"_a, "which"_a, "coefficients"_a,
             "total += K[columns, which] @ coefficients, without keeping K.")
        .def("add_two", &add_two, "totals"_a, "columns"_a, "which"_a,
             "coefficients"_a, "`add` for two rows of coefficients at once, if k is Gaussian and not of differences.")
        .def("add_several", &add_several, "totals"_a, "columns"_a, "which"_a, "coefficients"_a,
             "`add` for each row of coefficients and of totals, K evaluated once.")
        .def("add_normal", &add_normal, "total"_a, "columns"_a, "which"_a,
             "coefficients"_a, "weights"_a,
             "total += K[which, columns] (weights * (K[columns, which] @ coefficients)), K evaluated once.")
        .def("add_square", &add_square, "total"_a, "which"_a, "coefficients"_a,
             "total += K[which, which] @ coefficients, each value of the symmetric K evaluated once.")
        .def("block", &block, "which"_a, "columns"_a, "K[which, columns].")
        .def_prop_ro("expensive", &expensive, "Whether computing a value costs far more than reading one that was kept.")
        .def_prop_ro("dtype", &dtype, nb::sig("def dtype(self) -> numpy.dtype[typing.Any]"))
        .def("table", &table, "rows"_a, "which"_a, "room"_a = 0,
             "K[rows, which] with contiguous rows, and `room` more rows that are not set.")
        .def_prop_ro("doubled", &doubled, "Whether sums of sparse samples are in twice the precision.")
        .def_prop_ro("dense", &dense, "Whether every entry is stored.")
        .def("square", &square, "which"_a, "out"_a, "K[which, which], exactly symmetric, into the corner of `out`, which has room for whole tiles.");
    bind_sample_arrays(m);
    bind_pairs(samples);
}
