// Python's view of kept kernel values (gram/kept_values.hpp).
#include <nanobind/stl/pair.h>

#include "bind/arguments.hpp"
#include "gram/kept_values.hpp"
#include "simd/dispatch.hpp"

namespace {

template <class Array>
auto table_of(const Array& array) {
    using T = std::remove_reference_t<decltype(*array.data())>;
    const auto rows = static_cast<std::int64_t>(array.shape(0)), columns = static_cast<std::int64_t>(array.shape(1));
    if ((columns > 1 && array.stride(1) != 1) || (rows > 1 && array.stride(0) < columns)) {
        refuse("table", "must have contiguous rows that do not overlap");
    }
    return mercer::KeptValues<T>{array.data(), rows, columns, array.stride(0)};
}

void add_table(AnyArray total, AnyArray table, AnyArray coefficients, int n_threads, AnyArray rows) {
    with_matrix<float, double>(table, "table", [&](const auto& values) {
        const auto table_ = table_of(values);
        Vector<const std::int64_t> rows_;
        if (!rows.is_none()) {
            rows_ = vector<const std::int64_t>(rows, "rows");
            check_range(rows_.data(), rows_.shape(0), table_.rows, "rows");
        }
        const std::size_t count = rows.is_none() ? values.shape(0) : rows_.shape(0);
        const auto total_ = vector<double>(total, "total", count);
        const auto coefficients_ = vector<const double>(coefficients, "coefficients", values.shape(1));
        Signals signals;
        const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
        const nb::gil_scoped_release unlocked;
        mercer::add_table(table_, rows_.is_valid() ? rows_.data() : nullptr, static_cast<std::int64_t>(count),
                          coefficients_.data(), total_.data(), threads);
        return 0;
    });
}

template <class T>
using Rows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

class Combinations {
public:
    void append(std::pair<std::int64_t, std::int64_t> which, AnyArray outputs, AnyArray coefficients) {
        const auto outputs_ = vector<const std::int64_t>(outputs, "outputs");
        Rows<const double> coefficients_;
        if (!nb::try_cast(coefficients, coefficients_, false)) {
            refuse("coefficients", "must be a C-contiguous float64 matrix");
        }
        check_alignment(coefficients_, "coefficients");
        const auto [first, end] = which;
        if (first < 0 || end < first || coefficients_.shape(0) != static_cast<std::size_t>(end - first) ||
            coefficients_.shape(1) != outputs_.shape(0)) {
            refuse("coefficients", "must have a row for each vector and a column for each output");
        }
        check_range(outputs_.data(), outputs_.shape(0), INT32_MAX, "outputs");
        combinations_.append(first, end - first, outputs_.data(), static_cast<std::int64_t>(outputs_.shape(0)),
                             coefficients_.data());
    }

    void add(AnyArray total, AnyArray table, int n_threads) const {
        with_matrix<float, double>(table, "table", [&](const auto& values) {
            const auto table_ = table_of(values);
            Rows<double> total_;
            if (!nb::try_cast(total, total_, false)) {
                refuse("total", "must be a C-contiguous float64 matrix that can be written to");
            }
            check_alignment(total_, "total");
            if (total_.shape(0) != values.shape(1) ||
                static_cast<std::int64_t>(total_.shape(1)) < combinations_.outputs()) {
                refuse("total", "must have a row for each column of the table and a column for each output");
            }
            if (table_.rows < combinations_.vectors()) refuse("table", "must have a row for each vector");
            Signals signals;
            const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
            const nb::gil_scoped_release unlocked;
            combinations_.add(table_, total_.data(), static_cast<std::int64_t>(total_.shape(1)), threads);
            return 0;
        });
    }

private:
    mercer::Combinations combinations_;
};

void transpose(AnyArray source, AnyArray to, int n_threads) {
    with_matrix<float, double>(source, "source", [&](const auto& values) {
        using T = std::remove_const_t<std::remove_reference_t<decltype(*values.data())>>;
        const auto table_ = table_of(values);
        nb::ndarray<T, nb::ndim<2>, nb::device::cpu> to_;
        if (!nb::try_cast(to, to_, false)) {
            refuse("to", std::string("must be a two-dimensional ") + type_name<T>() + " array that can be written to");
        }
        check_alignment(to_, "to");
        const auto room = table_of(to_);
        if (room.rows != table_.columns || room.columns != table_.rows) refuse("to", "must have the shape of source.T");
        Signals signals;
        const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
        const nb::gil_scoped_release unlocked;
        mercer::transpose(table_, room.values, room.stride, threads);
        return 0;
    });
}

void copy_entries(AnyArray table, AnyArray rows, AnyArray sources, AnyArray out, AnyArray columns,
                  int n_threads) {
    with_matrix<float, double>(table, "table", [&](const auto& values) {
        using T = std::remove_const_t<std::remove_reference_t<decltype(*values.data())>>;
        const auto table_ = table_of(values);
        nb::ndarray<T, nb::ndim<2>, nb::device::cpu> out_;
        if (!nb::try_cast(out, out_, false)) {
            refuse("out", std::string("must be a two-dimensional ") + type_name<T>() + " array that can be written to");
        }
        check_alignment(out_, "out");
        const auto room = table_of(out_);
        const auto rows_ = vector<const std::int64_t>(rows, "rows", out_.shape(0));
        const auto sources_ = vector<const std::int64_t>(sources, "sources");
        const auto columns_ = vector<const std::int64_t>(columns, "columns", sources_.shape(0));
        check_range(rows_.data(), rows_.shape(0), table_.rows, "rows");
        check_range(sources_.data(), sources_.shape(0), table_.columns, "sources");
        check_range(columns_.data(), columns_.shape(0), room.columns, "columns");
        Signals signals;
        const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
        const nb::gil_scoped_release unlocked;
        mercer::copy_entries(table_, rows_.data(), room.rows, sources_.data(), columns_.data(),
                             static_cast<std::int64_t>(columns_.shape(0)), room.values, room.stride, threads);
        return 0;
    });
}

}  // namespace

void bind_kept_values(nb::module_& m) {
    m.def("add_table", &add_table, "total"_a, "table"_a, "coefficients"_a, "n_threads"_a,
          "rows"_a.none() = nb::none(), "total += table[rows] @ coefficients, in float64; all rows unless told.");
    nb::class_<Combinations>(m, "Combinations",
                             "Runs of vectors that serve the same few outputs, with their coefficients.")
        .def(nb::init<>())
        .def("append", &Combinations::append, "which"_a, "outputs"_a, "coefficients"_a,
             "The vectors from the first to before the second of `which` serve these outputs.")
        .def("add", &Combinations::add, "total"_a, "table"_a, "n_threads"_a,
             "total += table' coefficients, in float64; the table has a row for each vector.");
    m.def("transpose", &transpose, "source"_a, "to"_a, "n_threads"_a, "to = source.T.");
    m.def("copy_entries", &copy_entries, "table"_a, "rows"_a, "sources"_a, "out"_a,
          "columns"_a, "n_threads"_a, "out[:, columns] = table[rows][:, sources].");
}
