// Python's view of linear/: rows are checked once, when a LinearRows is made, and share the memory of the arrays.
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <tuple>
#include <variant>

#include "bind/picked_rows.hpp"
#include "bind/stop_reason.hpp"
#include "linear/descent.hpp"
#include "linear/doubled.hpp"
#include "linear/joint_descent.hpp"
#include "linear/packed_csr.hpp"
#include "linear/response.hpp"
#include "linear/rows.hpp"
#include "simd/dispatch.hpp"

namespace {

Vector<std::uint64_t> one_seed(AnyArray seed) {
    Vector<std::uint64_t> out;
    if (!nb::try_cast(seed, out, false) || out.shape(0) != 1) refuse("seed", "must be one writable uint64");
    return out;
}

using AnyRows = std::variant<mercer::LinearDense<float>, mercer::LinearDense<double>, mercer::LinearCsr<float>,
                             mercer::LinearCsr<double>>;

// Rows of any kind, with the arrays they point into. Only the calls of the core are compiled once per kind.
class LinearRows {
public:
    template <class Rows, class... Arrays>
    LinearRows(const Rows& rows, int n_threads, const Arrays&... arrays)
        : n(rows.n), d(rows.d), rows_(rows), kept_(std::make_shared<std::tuple<Arrays...>>(arrays...)), n_threads_(n_threads) {
        check_threads(n_threads);
    }

    void product(AnyArray w, double shift, AnyArray out) {
        const auto w_ = vector<const double>(w, "w", columns());
        const auto out_ = vector<double>(out, "out", height());
        run([&](const auto& rows, const mercer::Threads& threads) {
            mercer::linear_product(rows, w_.data(), shift, out_.data(), threads);
        });
    }

    void transposed(AnyArray c, AnyArray out) {
        const auto c_ = vector<const double>(c, "c", height());
        const auto out_ = vector<double>(out, "out", columns());
        run([&](const auto& rows, const mercer::Threads& threads) {
            mercer::linear_transposed(rows, c_.data(), out_.data(), threads);
        });
    }

    void doubled_product(AnyArray hi, AnyArray lo, AnyArray out) {
        const auto hi_ = vector<const double>(hi, "hi", columns());
        const auto lo_ = vector<const double>(lo, "lo", columns());
        const auto out_ = vector<double>(out, "out", height());
        run([&](const auto& rows, const mercer::Threads& threads) {
            mercer::doubled_product(rows, hi_.data(), lo_.data(), out_.data(), threads);
        });
    }

    void doubled_transposed(AnyArray c, AnyArray hi, AnyArray lo) {
        const auto c_ = vector<const double>(c, "c", height());
        const auto hi_ = vector<double>(hi, "hi", columns());
        const auto lo_ = vector<double>(lo, "lo", columns());
        run([&](const auto& rows, const mercer::Threads& threads) {
            mercer::doubled_transposed(rows, c_.data(), hi_.data(), lo_.data(), threads);
        });
    }

    void outer(AnyArray which, AnyArray c, AnyArray out) {
        const auto which_ = vector<const std::int64_t>(which, "which");
        check_range(which_.data(), which_.shape(0), n, "which");
        const auto c_ = vector<const double>(c, "c", which_.shape(0));
        nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> out_;
        if (!nb::try_cast(out, out_, false) || out_.shape(0) != columns() + 1 || out_.shape(1) != columns() + 1) {
            refuse("out", "must be a contiguous float64 matrix with one row and column more than there are features");
        }
        run([&](const auto& rows, const mercer::Threads& threads) {
            mercer::linear_outer(rows, which_.data(), c_.data(), static_cast<std::int64_t>(which_.shape(0)),
                                 out_.data(), threads);
        });
    }

    void lengths(AnyArray out) {
        const auto out_ = vector<double>(out, "out", height());
        run([&](const auto& rows, const mercer::Threads& threads) {
            mercer::linear_lengths(rows, out_.data(), threads);
        });
    }

    TupleOf<std::int64_t, double, double, nb::str> descend(AnyArray p, AnyArray lower, AnyArray upper, AnyArray d_given, AnyArray epsilon,
                      AnyArray lengths, double bias, AnyArray beta, AnyArray w, AnyArray b, double value,
                      bool hold, AnyArray seed, double tol, double gap, std::int64_t max_epochs, double max_seconds,
                      bool shrinking) {
        const auto p_ = vector<const double>(p, "p", height());
        const auto lower_ = vector<const double>(lower, "lower", height());
        const auto upper_ = vector<const double>(upper, "upper", height());
        const auto ridge_ = vector<const double>(d_given, "d", height());
        const auto epsilon_ = vector<const double>(epsilon, "epsilon", height());
        const auto lengths_ = vector<const double>(lengths, "lengths", height());
        const auto beta_ = vector<double>(beta, "beta", height());
        const auto w_ = vector<double>(w, "w", columns());
        const auto b_ = vector<double>(b, "b", 1);
        const auto seed_ = one_seed(seed);
        const mercer::DcdProblem problem{p_.data(),       lower_.data(),   upper_.data(), ridge_.data(),
                                         epsilon_.data(), lengths_.data(), bias,          beta_.data(),
                                         w_.data(),       b_.data(),       value,         hold};
        const mercer::DcdStop stop{tol, gap, max_epochs, max_seconds, shrinking};
        mercer::DcdResult result{};
        run([&](const auto& rows, const mercer::Threads& threads) {
            result = mercer::linear_dcd(rows, packed_, problem, stop, seed_.data(), threads);
        });
        return nb::make_tuple(result.epochs, result.violation, result.gap, word_of(result.reason));
    }

    TupleOf<std::int64_t, double, double, nb::str> descend_joint(AnyArray y, AnyArray C, AnyArray lengths, double bias, AnyArray beta, AnyArray w,
                            AnyArray w_bias, AnyArray seed, double tol, double gap, std::int64_t max_epochs,
                            double max_seconds, bool shrinking) {
        const auto w_bias_ = vector<double>(w_bias, "w_bias");
        const std::size_t classes = w_bias_.shape(0);
        if (classes < 2) refuse("w_bias", "must have an element for each of at least two classes");
        const auto y_ = vector<const std::int64_t>(y, "y", height());
        check_range(y_.data(), height(), static_cast<std::int64_t>(classes), "y");
        const auto C_ = vector<const double>(C, "C", height());
        const auto lengths_ = vector<const double>(lengths, "lengths", height());
        const auto beta_ = vector<double>(beta, "beta", height() * classes);
        const auto w_ = vector<double>(w, "w", columns() * classes);
        const auto seed_ = one_seed(seed);
        const mercer::JointDcdProblem problem{
            y_.data(),    C_.data(), lengths_.data(), bias, static_cast<std::int64_t>(classes),
            beta_.data(), w_.data(), w_bias_.data()};
        const mercer::DcdStop stop{tol, gap, max_epochs, max_seconds, shrinking};
        mercer::DcdResult result{};
        run([&](const auto& rows, const mercer::Threads& threads) {
            result = mercer::linear_joint_dcd(rows, problem, stop, seed_.data(), threads);
        });
        return nb::make_tuple(result.epochs, result.violation, result.gap, word_of(result.reason));
    }

    const std::int64_t n, d;

private:
    std::size_t height() const { return static_cast<std::size_t>(n); }
    std::size_t columns() const { return static_cast<std::size_t>(d); }

    template <class Work>
    void run(Work work) {
        Signals signals;
        const nb::gil_scoped_release unlocked;
        const mercer::Threads threads{n_threads_, level_, signals.poll()};
        std::visit([&](const auto& rows) { work(rows, threads); }, rows_);
    }

    AnyRows rows_;
    std::shared_ptr<const void> kept_;
    int n_threads_;
    const mercer::Level& level_ = mercer::level();
    mercer::PackedCsr packed_;
};

std::unique_ptr<LinearRows> dense_rows(AnyArray X, int n_threads, AnyArray which) {
    std::unique_ptr<LinearRows> out;
    with_rows(X, which, [&]<class T>(const GivenRows<T>& given) {
        out = std::make_unique<LinearRows>(given.rows, n_threads, given.array, given.which);
    });
    return out;
}

std::unique_ptr<LinearRows> csr_rows(AnyArray data, AnyArray indices, AnyArray starts, AnyArray ends,
                                     std::int64_t d, int n_threads) {
    std::unique_ptr<LinearRows> out;
    if (d < 0) refuse("d", "must not be negative");
    const auto indices_ = vector<const std::int32_t>(indices, "indices");
    const auto starts_ = vector<const std::int64_t>(starts, "starts");
    const auto ends_ = vector<const std::int64_t>(ends, "ends", starts_.shape(0));
    if (!mercer::all_indices(indices_.data(), indices_.shape(0), d)) {
        refuse("indices", "holds a column that is out of range");
    }
    with_vector<float, double>(data, "data", "float32 or float64", [&](const auto& data_) {
        if (indices_.shape(0) != data_.shape(0)) refuse("indices", "must have as many elements as data");
        const auto n = static_cast<std::int64_t>(starts_.shape(0)), all = static_cast<std::int64_t>(data_.shape(0));
        if (!mercer::are_ranges(starts_.data(), ends_.data(), starts_.shape(0), all)) {
            refuse("ends", "must not be before starts, and both between 0 and the number of stored elements");
        }
        const std::int64_t stored = mercer::stored_in(starts_.data(), ends_.data(), n);
        const mercer::LinearCsr<Element<decltype(data_)>> rows{
            data_.data(), indices_.data(), starts_.data(), ends_.data(), stored, n, d};
        out = std::make_unique<LinearRows>(rows, n_threads, data_, indices_, starts_, ends_);
    });
    return out;
}

// The samples of a Newton method, whose arrays it keeps.
class Respondents {
public:
    Respondents(AnyArray q, AnyArray inverse, AnyArray lower, AnyArray upper, AnyArray epsilon, int n_threads)
        : q_(vector<const double>(q, "q")),
          inverse_(vector<const double>(inverse, "inverse", size())),
          lower_(vector<const double>(lower, "lower", size())),
          upper_(vector<const double>(upper, "upper", size())),
          epsilon_(vector<const double>(epsilon, "epsilon", size())),
          n_threads_(n_threads) {
        if (n_threads < 1) refuse("n_threads", "must be at least 1");
    }

    TupleOf<double, double, double> respond(AnyArray p, AnyArray d, AnyArray f, AnyArray t) const {
        const auto p_ = vector<const double>(p, "p", size()), d_ = vector<const double>(d, "d", size());
        const auto f_ = vector<const double>(f, "f", size());
        const auto t_ = vector<double>(t, "t", size());
        mercer::Response sums{};
        {
            Signals signals;
            const nb::gil_scoped_release unlocked;
            sums =
                mercer::linear_response(view(), p_.data(), d_.data(), f_.data(), t_.data(), n_threads_, signals.poll());
        }
        return nb::make_tuple(sums.total, sums.losses, sums.shares);
    }

    double along(AnyArray f, AnyArray move, double step) const {
        const auto f_ = vector<const double>(f, "f", size()), move_ = vector<const double>(move, "move", size());
        Signals signals;
        const nb::gil_scoped_release unlocked;
        return mercer::linear_along(view(), f_.data(), move_.data(), step, n_threads_, signals.poll());
    }

private:
    std::size_t size() const { return q_.shape(0); }
    mercer::SmoothedLosses view() const {
        return {static_cast<std::int64_t>(size()),
                q_.data(),
                inverse_.data(),
                lower_.data(),
                upper_.data(),
                epsilon_.data()};
    }
    Vector<const double> q_, inverse_, lower_, upper_, epsilon_;
    int n_threads_;
};

}  // namespace

void bind_linear(nb::module_& m) {
    nb::class_<LinearRows>(m, "LinearRows", "The rows of a linear machine's data, dense or CSR.")
        .def_ro("n", &LinearRows::n)
        .def_ro("d", &LinearRows::d)
        .def("product", &LinearRows::product, "w"_a, "shift"_a, "out"_a, "out = Xw + shift.")
        .def("transposed", &LinearRows::transposed, "c"_a, "out"_a, "out = X'c; rows whose c is 0 are skipped. The result does not depend on the number of threads.")
        .def("doubled_product", &LinearRows::doubled_product, "hi"_a, "lo"_a, "out"_a,
             "out = X(hi + lo), summed in twice the precision and rounded once.")
        .def("doubled_transposed", &LinearRows::doubled_transposed, "c"_a, "hi"_a, "lo"_a,
             "hi + lo = X'c in twice the precision.")
        .def("outer", &LinearRows::outer, "which"_a, "c"_a, "out"_a,
             "The lower triangle of out = sum of c z z' over the rows named, z = (x, 1).")
        .def("lengths", &LinearRows::lengths, "out"_a, "Squared lengths of the rows.")
        .def("descend", &LinearRows::descend, "p"_a, "lower"_a, "upper"_a, "d"_a,
             "epsilon"_a, "lengths"_a, "bias"_a, "beta"_a, "w"_a, "b"_a, "value"_a,
             "hold"_a, "seed"_a, "tol"_a, "gap"_a, "max_epochs"_a, "max_seconds"_a, "shrinking"_a,
             "Dual coordinate descent; beta, w, b and seed are changed in place.\n\n"
             "Ends when no gradient over all rows is above tol and their shares of the gap add up to no more than `gap` of "
             "the dual value. `value` is that of the dual at the start without what the bias takes. A bias of infinity "
             "asks for a free one. That needs `hold` (b follows the passes, not each step), sparse rows, and boxes with "
             "zero at one end; \"unsettled\" means that b was not found so. Returns the passes taken, violation, gap, and "
             "why it ended: \"converged\", \"max_epochs\", \"max_seconds\" or \"unsettled\".")
        .def("descend_joint", &LinearRows::descend_joint, "y"_a, "C"_a, "lengths"_a, "bias"_a,
             "beta"_a, "w"_a, "w_bias"_a, "seed"_a, "tol"_a, "gap"_a, "max_epochs"_a,
             "max_seconds"_a, "shrinking"_a,
             "`descend` for Crammer and Singer's joint machine; beta and w are flat, the classes side by side.");
    nb::class_<Respondents>(m, "Respondents", "How samples respond to outputs f: t = the point of [lower, upper] nearest to "
                            "shrunk(q - f, epsilon) * inverse.")
        .def(nb::init<AnyArray, AnyArray, AnyArray, AnyArray, AnyArray, int>(), "q"_a,
             "inverse"_a, "lower"_a, "upper"_a, "epsilon"_a, "n_threads"_a)
        .def("respond", &Respondents::respond, "p"_a, "d"_a, "f"_a, "t"_a,
             "Fills t; the sums of t, of the losses with p and d, and of the shares of the duality gap.")
        .def("along", &Respondents::along, "f"_a, "move"_a, "step"_a,
             "The sum of t * move at f + step * move.");
    m.def("dense_rows", &dense_rows, "X"_a, "n_threads"_a, "which"_a.none() = nb::none(),
          "Rows that share the memory of X: all, or those named, in any order.");
    m.def("csr_rows", &csr_rows, "data"_a, "indices"_a, "starts"_a, "ends"_a, "d"_a,
          "n_threads"_a, "Any rows of CSR arrays, whose memory they share; starts and ends have the type of indices.");
}
