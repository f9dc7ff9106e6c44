// Python's face of the text parser: the caller allocates what the layout asks for, the core fills it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "bind/arguments.hpp"
#include "text/parser.hpp"

namespace {

// The text and where its blocks begin. Keeps the array alive, whose bytes must not change.
class Text {
    using Fault = TupleOf<std::int64_t, std::int64_t, nb::str>;

public:
    Text(Vector<const std::uint8_t> bytes, int n_threads) : bytes_(std::move(bytes)) {
        check_threads(n_threads);
        Signals signals;
        const nb::gil_scoped_release unlocked;
        layout_ = mercer::lay_out_text(data(), size(), n_threads, signals.poll());
    }

    std::int64_t rows() const { return layout_.rows; }
    std::int64_t entries() const { return layout_.entries; }

    TupleOf<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::optional<Fault>> parse(Vector<double> labels, Vector<std::int64_t> starts, Vector<std::int64_t> queries,
                    Vector<std::int32_t> indices, Vector<double> values, int n_threads) const {
        check_threads(n_threads);
        const auto rows = static_cast<std::size_t>(layout_.rows), entries = static_cast<std::size_t>(layout_.entries);
        if (labels.shape(0) != rows || starts.shape(0) != rows + 1 || queries.shape(0) != rows ||
            indices.shape(0) != entries || values.shape(0) != entries) {
            throw nb::value_error("the arrays must have rows, rows + 1, rows, entries and entries elements");
        }
        mercer::TextResult result;
        {
            const mercer::TextArrays arrays{labels.data(), starts.data(), queries.data(), indices.data(),
                                            values.data()};
            Signals signals;
            const nb::gil_scoped_release unlocked;
            result = mercer::parse_text(data(), size(), layout_, arrays, n_threads, signals.poll());
        }
        nb::object fault = nb::none();
        if (result.fault) fault = nb::make_tuple(result.fault->line, result.fault->column, result.fault->what);
        return nb::make_tuple(result.rows, result.entries, result.least_index, result.largest_index,
                              result.rows_with_query, fault);
    }

private:
    Vector<const std::uint8_t> bytes_;
    mercer::TextLayout layout_;

    const char* data() const { return reinterpret_cast<const char*>(bytes_.data()); }
    std::int64_t size() const { return static_cast<std::int64_t>(bytes_.shape(0)); }
};

}  // namespace

void bind_text(nb::module_& m) {
    nb::class_<Text>(m, "Text", "LIBSVM or SVMlight text, cut into blocks of lines and counted.")
        .def(nb::init<Vector<const std::uint8_t>, int>(), "bytes"_a, "n_threads"_a)
        .def_prop_ro("rows", &Text::rows, "No text of this layout has more rows.")
        .def_prop_ro("entries", &Text::entries, "Nor more index:value pairs.")
        .def("parse", &Text::parse, "labels"_a.noconvert(), "starts"_a.noconvert(), "queries"_a.noconvert(),
             "indices"_a.noconvert(), "values"_a.noconvert(), "n_threads"_a,
             "Fill the arrays; (rows, entries, least index, largest index, rows with qid, fault or None).");
}
