// Python's view of solve/homotopy.hpp.
#include "solve/homotopy.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <optional>

#include "bind/arguments.hpp"
#include "simd/dispatch.hpp"

namespace {

// Thrown where rounding decides the order of events, or the equations are singular.
struct Stalled : std::exception {
    const char* what() const noexcept override {
        return "rounding decides the order of events, or the equations of the free variables are singular";
    }
};

using Line = std::pair<double, double>;
using PlainMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

PlainMatrix plain_matrix(nb::handle object, const char* name) {
    PlainMatrix out;
    if (!nb::try_cast(object, out, false)) refuse(name, "must be a C-contiguous two-dimensional float64 array");
    check_alignment(out, name);
    return out;
}

mercer::Doubles copy_of(const Vector<const double>& array) { return {array.data(), array.data() + array.shape(0)}; }

template <class Use>
auto unlocked(Use use) {
    Signals signals;
    const mercer::Threads threads{1, mercer::level(), signals.poll()};
    const nb::gil_scoped_release released;
    return use(threads);
}

// Rows that Python computes when they are asked for.
class ComputedRows final : public mercer::KernelRows {
public:
    ComputedRows(nb::object rows, nb::object product, std::size_t n)
        : rows_(std::move(rows)), product_(std::move(product)), n_(n) {}

    std::vector<mercer::KernelRow> rows(const std::vector<std::int64_t>& which) override {
        const nb::gil_scoped_acquire lock;
        const nb::object answer = rows_(as_array(which));
        const PlainMatrix found = plain_matrix(answer, "rows");
        if (found.shape(0) != which.size() || found.shape(1) != n_) refuse("rows", "must return whole rows of K");
        const std::shared_ptr<double[]> kept(new double[which.size() * n_]);
        std::copy_n(found.data(), which.size() * n_, kept.get());
        std::vector<mercer::KernelRow> out;
        for (std::size_t i = 0; i < which.size(); ++i) out.emplace_back(kept, kept.get() + i * n_);
        return out;
    }

    mercer::Doubles product(const mercer::Doubles& coefficients) override {
        const nb::gil_scoped_acquire lock;
        const nb::object answer = product_(as_array(coefficients));
        return copy_of(vector<const double>(answer, "product", n_));
    }

private:
    nb::object rows_, product_;
    std::size_t n_;
};

// A stored matrix whose memory is kept alive as long as this object or one of its rows is in use.
class HeldKernel final : public mercer::KernelRows {
public:
    explicit HeldKernel(PlainMatrix values)
        : values_(std::move(values)),
          stored_(values_.data(), values_.shape(1), values_.shape(0), mercer::level()) {}
    std::vector<mercer::KernelRow> rows(const std::vector<std::int64_t>& which) override { return stored_.rows(which); }
    mercer::Doubles product(const mercer::Doubles& coefficients) override { return stored_.product(coefficients); }

private:
    PlainMatrix values_;
    mercer::StoredKernel stored_;
};

struct MatrixOf {
    std::shared_ptr<const mercer::HomotopyMatrix> held;

    MatrixOf(AnyArray diagonal, AnyArray d, AnyArray row, std::optional<AnyArray> values, nb::object rows,
             nb::object product) {
        const auto diagonal_ = vector<const double>(diagonal, "diagonal");
        const auto d_ = vector<const double>(d, "d");
        const auto row_ = vector<const std::int64_t>(row, "row", d_.shape(0));
        const std::size_t n = diagonal_.shape(0);
        check_range(row_.data(), row_.shape(0), static_cast<std::int64_t>(n), "row");
        std::shared_ptr<mercer::KernelRows> kernel;
        if (values.has_value()) {
            PlainMatrix whole = plain_matrix(*values, "values");
            if (whole.shape(0) != n || whole.shape(1) != n) {
                refuse("values", "must have a row and a column for each element of diagonal");
            }
            kernel = std::make_shared<HeldKernel>(std::move(whole));
        } else {
            if (rows.is_none() || product.is_none()) refuse("rows and product", "are needed where values is None");
            kernel = std::make_shared<ComputedRows>(std::move(rows), std::move(product), n);
        }
        held = std::make_shared<const mercer::HomotopyMatrix>(mercer::HomotopyMatrix{
            std::move(kernel), copy_of(diagonal_), copy_of(d_), {row_.data(), row_.data() + row_.shape(0)}});
    }
};

struct FamilyOf {
    mercer::Family held;

    FamilyOf(AnyArray p, AnyArray lower, AnyArray upper, std::optional<Line> total) {
        held.p = lines(p, "p");
        held.lower = lines(lower, "lower");
        held.upper = lines(upper, "upper");
        if (held.lower.size() != held.n() || held.upper.size() != held.n()) {
            refuse("p, lower and upper", "must have the same shape");
        }
        held.has_total = total.has_value();
        if (total.has_value()) held.total = {total->first, total->second};
    }

private:
    static mercer::Lines lines(nb::handle object, const char* name) {
        const PlainMatrix both = plain_matrix(object, name);
        if (both.shape(0) != 2) refuse(name, "must have two rows, values at t = 0 and slopes");
        const double* const data = both.data();
        const std::size_t n = both.shape(1);
        return {{data, data + n}, {data + n, data + 2 * n}};
    }
};

class Homotopy {
public:
    Homotopy(const MatrixOf& matrix, const FamilyOf& family, AnyArray side, double t)
        : held_(make(matrix, family, side, t)) {
        if (!held_.sound()) throw Stalled();
    }
    explicit Homotopy(mercer::Homotopy held) : held_(std::move(held)) {}

    bool advance(double end, bool recompute_far) {
        using Next = mercer::Homotopy::Next;
        const Next next = unlocked([&](const auto& threads) { return held_.advance(end, recompute_far, threads); });
        if (next == Next::kStalled) throw Stalled();
        return next == Next::kEvent;
    }
    void apply() {
        if (!unlocked([&](const auto& threads) { return held_.apply(threads); })) throw Stalled();
    }
    void follow(double end) {
        if (!unlocked([&](const auto& threads) { return held_.follow(end, threads); })) throw Stalled();
    }

    double t() const { return held_.t(); }
    void move_to(double t) { held_.move_to(t); }
    std::int64_t steps() const { return held_.steps(); }
    std::int64_t refactorisations() const { return held_.system().refactorisations(); }
    OwnArray<std::int8_t> side() const { return as_array(held_.side()); }
    Indices order() const { return as_array(std::vector<std::int64_t>(held_.order().begin(), held_.order().end())); }
    auto log() const {
        return as_list(held_.log(), [](const mercer::Change& change) -> TupleOf<double, std::int64_t, int> {
            return nb::make_tuple(change.t, change.variable, static_cast<int>(change.to));
        });
    }

    Doubles beta(double t) {
        return as_array(unlocked([&](const auto& threads) { return held_.beta(t, segment(threads), threads); }));
    }
    double bias(double t) {
        return unlocked([&](const auto& threads) { return segment(threads).b_at(t); });
    }
    double energy(double t) {
        return unlocked([&](const auto& threads) { return held_.energy(t, segment(threads)); });
    }
    Doubles gradient(double t, AnyArray beta) const {
        const mercer::Doubles given = copy_of(vector<const double>(beta, "beta", held_.family().n()));
        return as_array(unlocked([&](const auto& threads) { return held_.gradient(t, given, threads); }));
    }
    TupleOf<double, double, double> sum_of(AnyArray factors) {
        const auto given = vector<const double>(factors, "factors", held_.family().n());
        const auto [begin, sum] = unlocked([&](const auto& threads) {
            const mercer::Segment& here = segment(threads);
            return std::pair(here.t, held_.sum_of(given.data(), here));
        });
        return nb::make_tuple(begin, sum.start, sum.slope);
    }

    void restart() {
        unlocked([&](const auto& threads) {
            held_.restart(threads);
            return 0;
        });
    }
    Homotopy with_family(const FamilyOf& family, double t) const {
        if (family.held.n() != held_.family().n() || family.held.has_total != held_.family().has_total) {
            refuse("family", "must have as many variables, and a total where this one has");
        }
        Homotopy out(held_);
        unlocked([&](const auto& threads) {
            out.held_.change_family(family.held, t, threads);
            return 0;
        });
        return out;
    }
    void fix(std::int64_t v, int side) {
        check_variable(v);
        if (side != mercer::kLower && side != mercer::kUpper) refuse("side", "must be -1 or 1");
        unlocked([&](const auto& threads) {
            held_.fix(static_cast<std::size_t>(v), static_cast<mercer::Side>(side), threads);
            return 0;
        });
    }
    Doubles distances() const { return as_array(held_.system().distances()); }
    double distance(std::int64_t v) {
        check_variable(v);
        const double out =
            unlocked([&](const auto& threads) { return held_.distance(static_cast<std::size_t>(v), threads); });
        if (!held_.sound()) throw Stalled();
        return out;
    }

private:
    mercer::Homotopy held_;

    void check_variable(std::int64_t v) const {
        check_range(&v, 1, static_cast<std::int64_t>(held_.family().n()), "v");
    }

    const mercer::Segment& segment(const mercer::Threads& threads) {
        const mercer::Segment* const found = held_.segment(threads);
        if (found == nullptr) throw Stalled();
        return *found;
    }

    static mercer::Homotopy make(const MatrixOf& matrix, const FamilyOf& family, nb::handle side, double t) {
        if (family.held.n() != matrix.held->row.size()) refuse("family", "must have a variable for each of the matrix");
        Vector<const std::int8_t> given;
        if (!nb::try_cast(side, given, false) || given.shape(0) != family.held.n()) {
            refuse("side", "must be a contiguous int8 array with an element for each variable");
        }
        std::vector<std::int8_t> sides(given.data(), given.data() + given.shape(0));
        if (!std::all_of(sides.begin(), sides.end(), [](std::int8_t s) { return s >= -1 && s <= 1; })) {
            refuse("side", "must be -1, 0 or 1");
        }
        return unlocked([&](const auto& threads) {
            return mercer::Homotopy(matrix.held, family.held, std::move(sides), t, threads);
        });
    }
};

Homotopy settle(const MatrixOf& matrix, const FamilyOf& family, AnyArray beta) {
    if (family.held.n() != matrix.held->row.size()) refuse("family", "must have a variable for each of the matrix");
    mercer::Doubles start = copy_of(vector<const double>(beta, "beta", family.held.n()));
    std::optional<mercer::Homotopy> found = unlocked([&](const auto& threads) {
        return mercer::settle(matrix.held, family.held, std::move(start), threads);
    });
    if (!found.has_value()) throw Stalled();
    return Homotopy(std::move(*found));
}

}  // namespace

void bind_homotopy(nb::module_& m) {
    nb::exception<Stalled>(m, "Stalled", PyExc_ArithmeticError);
    nb::class_<MatrixOf>(m, "HomotopyMatrix",
                       "K + diag d: variable v belongs to row[v] of K, whose diagonal is given.\n\n"
                       "K is `values` or, where that is None, rows(which) returns rows of it and product(c) K c.")
        .def(nb::init<AnyArray, AnyArray, AnyArray, std::optional<AnyArray>, nb::object, nb::object>(), "diagonal"_a,
             "d"_a, "row"_a, "values"_a.none() = nb::none(), "rows"_a.none() = nb::none(),
             "product"_a.none() = nb::none(),
             nb::sig("def __init__(self, diagonal: NDArray[Any], d: NDArray[Any], row: NDArray[Any], values: "
                     "NDArray[Any] | None = None, rows: Any = None, product: Any = None) -> None"));
    nb::class_<FamilyOf>(m, "Family",
                         "Targets, bounds and a total that are affine in t: rows of values at t = 0, and of slopes.")
        .def(nb::init<AnyArray, AnyArray, AnyArray, std::optional<Line>>(), "p"_a, "lower"_a, "upper"_a,
             "total"_a.none());
    nb::class_<Homotopy>(m, "Homotopy",
                         "The solutions of a family of dual problems, followed from event to event of its active set."
                         "\n\nmaximise p(t)'b - 1/2 b'(K + diag d)b subject to lower(t) <= b <= upper(t), sum of b = "
                         "total(t). Side -1: at the lower bound, 0: free, 1: at the upper bound. Raises Stalled where "
                         "rounding decides the order of events.")
        .def(nb::init<const MatrixOf&, const FamilyOf&, AnyArray, double>(), "matrix"_a, "family"_a, "side"_a, "t"_a)
        .def("advance", &Homotopy::advance, "end"_a, "recompute_far"_a,
             "Move t to the next event, before the sets change, and return True; to `end` if there is none before.\n\n"
             "recompute_far: before an event at more than twice t, recompute Kb, which rounding may have caused.")
        .def("apply", &Homotopy::apply, "Change the sets as the event that `advance` found wants it.")
        .def("follow", &Homotopy::follow, "end"_a, "Advance and apply up to `end`.")
        .def_prop_rw("t", &Homotopy::t, &Homotopy::move_to)
        .def_prop_ro("steps", &Homotopy::steps, "Events so far.")
        .def_prop_ro("refactorisations", &Homotopy::refactorisations,
                     "Number of times that the inverse was computed afresh.")
        .def_prop_ro("side", &Homotopy::side, nb::rv_policy::move, "The side of each variable, a copy.")
        .def_prop_ro("order", &Homotopy::order, nb::rv_policy::move,
                     "The free variables, in the order of their equations.")
        .def_prop_ro("log", &Homotopy::log, "Every change so far: t, the variable, and the side it went to.")
        .def("beta", &Homotopy::beta, "t"_a, "The variables at t, in the box, as long as the sets stay the same.")
        .def("bias", &Homotopy::bias, "t"_a, "The bias; where no variable is free, the middle of its interval.")
        .def("energy", &Homotopy::energy, "t"_a, "b'Kb.")
        .def("gradient", &Homotopy::gradient, "t"_a, "beta"_a,
             "p - Kb - d b at t, where the bounded ones of beta are at their bounds.")
        .def("sum_of", &Homotopy::sum_of, "factors"_a,
             "The t where the segment begins, the sum of these multiples of b there, and its slope without rounding.")
        .def("restart", &Homotopy::restart, "Recompute what the bounded variables add to Kb.")
        .def("with_family", &Homotopy::with_family, "family"_a, "t"_a,
             "A copy with these sets on the way of another family.")
        .def("fix", &Homotopy::fix, "v"_a, "side"_a, "Put a variable onto a bound.")
        .def("distances", &Homotopy::distances,
             "Squared distances of the free variables' images from the affine hull of the others; without a total, "
             "from their span.")
        .def("distance", &Homotopy::distance, "v"_a,
             "The squared distance of v's image from the hull of the free ones.");
    m.def("settle", &settle, "matrix"_a, "family"_a, "beta"_a,
          "The homotopy at t = 1 of the exact solution of a family that does not depend on t, from any beta.");
}
