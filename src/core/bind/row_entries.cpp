// Python's view of algebra/row_entries.hpp.
#include "algebra/row_entries.hpp"

#include "bind/arguments.hpp"

namespace {

using Entries = TupleOf<Doubles, Indices, Indices>;

Entries as_tuple(mercer::RowEntries entries) {
    return nb::make_tuple(as_array(std::move(entries.data)), as_array(std::move(entries.columns)),
                          as_array(std::move(entries.ends)));
}

mercer::ColumnEntries checked(const Vector<const std::int64_t>& rows,
                              const Vector<const std::int64_t>& ends, std::int64_t n_rows) {
    if (n_rows < 0) refuse("n_rows", "must not be negative");
    check_range(rows.data(), rows.shape(0), n_rows, "rows");
    const std::size_t columns = ends.shape(0);
    if (columns == 0 || ends.data()[0] != 0 || ends.data()[columns - 1] != static_cast<std::int64_t>(rows.shape(0)) ||
        !mercer::is_nondecreasing(ends.data(), columns)) {
        refuse("ends", "must rise from 0 to the number of entries");
    }
    return {rows.data(), ends.data(), static_cast<std::int64_t>(columns) - 1};
}

Entries by_rows(AnyArray data, AnyArray rows, AnyArray ends, std::int64_t n_rows) {
    const auto data_ = vector<const double>(data, "data");
    const auto rows_ = vector<const std::int64_t>(rows, "rows", data_.shape(0));
    const auto ends_ = vector<const std::int64_t>(ends, "ends");
    const mercer::ColumnEntries of = checked(rows_, ends_, n_rows);
    mercer::RowEntries out;
    {
        const nb::gil_scoped_release unlocked;
        out = mercer::by_rows(of, data_.data(), n_rows);
    }
    return as_tuple(std::move(out));
}

Entries status_by_rows(AnyArray beta, AnyArray lower, AnyArray upper, AnyArray rows, AnyArray ends,
                         std::int64_t n_rows, AnyArray which) {
    const auto beta_ = vector<const double>(beta, "beta");
    const std::size_t n = beta_.shape(0);
    const auto lower_ = vector<const double>(lower, "lower", n), upper_ = vector<const double>(upper, "upper", n);
    const auto rows_ = vector<const std::int64_t>(rows, "rows", n), ends_ = vector<const std::int64_t>(ends, "ends");
    const auto which_ = vector<const std::int64_t>(which, "which");
    const mercer::ColumnEntries of = checked(rows_, ends_, n_rows);
    check_range(which_.data(), which_.shape(0), n_rows, "which");
    mercer::RowEntries out;
    {
        const nb::gil_scoped_release unlocked;
        out = mercer::status_by_rows(of, beta_.data(), lower_.data(), upper_.data(), n_rows, which_.data(),
                                     static_cast<std::int64_t>(which_.shape(0)));
    }
    return as_tuple(std::move(out));
}

TupleOf<Indices, Indices, Indices> take_rows(AnyArray ends, AnyArray rows) {
    const auto ends_ = vector<const std::int64_t>(ends, "ends"), rows_ = vector<const std::int64_t>(rows, "rows");
    if (ends_.shape(0) == 0) refuse("ends", "must have one element more than there are rows");
    const auto n_rows = static_cast<std::int64_t>(ends_.shape(0)) - 1;
    if (!mercer::is_indptr(ends_.data(), n_rows, ends_.data()[n_rows]) || ends_.data()[0] != 0) {
        refuse("ends", "must begin with 0 and must not decrease");
    }
    check_range(rows_.data(), rows_.shape(0), n_rows, "rows");
    mercer::TakenRows out;
    {
        const nb::gil_scoped_release unlocked;
        out = mercer::take_rows(ends_.data(), rows_.data(), static_cast<std::int64_t>(rows_.shape(0)));
    }
    return nb::make_tuple(as_array(std::move(out.ends)), as_array(std::move(out.entries)),
                          as_array(std::move(out.rows)));
}

}  // namespace

void bind_row_entries(nb::module_& m) {
    m.def("by_rows", &by_rows, "data"_a, "rows"_a, "ends"_a, "n_rows"_a,
          "Data, columns and row ends of the numbers that are not zero, given one column after another; those of the same "
          "cell are added up.");
    m.def("status_by_rows", &status_by_rows, "beta"_a, "lower"_a, "upper"_a, "rows"_a,
          "ends"_a, "n_rows"_a, "which"_a,
          "Like `by_rows` of the rows `which`, with 1 for each cell that has a variable strictly inside its box, and 2 where "
          "all that are not zero lie at a bound.");
    m.def("take_rows", &take_rows, "ends"_a, "rows"_a,
          "The row ends of some rows, which entries they have, and the row of each entry.");
}
