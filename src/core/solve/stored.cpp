// Pair steps on the stored rows, then u from the variables that have changed.
#include "solve/stored.hpp"

#include <algorithm>
#include <vector>

#include "simd/level_entries.hpp"

namespace mercer {
namespace {

// Rows that are summed between two polls: a few milliseconds.
constexpr std::int64_t kElementsPerPoll = 1 << 20;

template <class T>
class StoredRows final : public RowSource<T> {
public:
    explicit StoredRows(const StoredProblem<T>& problem) : in_(problem) {}
    const T* row(std::int64_t i) override { return in_.kernel + in_.which[i] * in_.stride; }
    double diagonal(std::int64_t i) const override {
        return static_cast<double>(in_.kernel[in_.which[i] * in_.stride + i]);
    }

private:
    const StoredProblem<T>& in_;
};

}  // namespace

template <class T>
SmoResult solve_stored(const StoredProblem<T>& in, const SmoStop& stop, const Level& level, Poll& poll) {
    const auto q = static_cast<std::size_t>(in.q);
    std::vector<double> h(q), beta(in.beta, in.beta + in.q), u(in.u, in.u + in.q);
    for (std::size_t i = 0; i < q; ++i) h[i] = in.p[i] - in.u[i] - in.d[i] * in.beta[i];
    StoredRows<T> rows(in);
    const SmoProblem<T> problem{.kernel = nullptr,
                                .stride = 0,
                                .q = in.q,
                                .h = h.data(),
                                .beta = beta.data(),
                                .lower = in.lower,
                                .upper = in.upper,
                                .d = in.d,
                                .group = in.group,
                                .source = &rows};
    const SmoResult result = smo(problem, stop, level, poll);
    const auto subtract = smo_passes_of<T>(level).subtract;
    std::int64_t untouched = kElementsPerPoll;
    for (std::int64_t i = 0; i < in.q; ++i) {
        const double change = beta[static_cast<std::size_t>(i)] - in.beta[i];
        if (change == 0.0) continue;
        subtract(u.data(), rows.row(i), -change, in.q);
        if ((untouched -= in.q) < 0) {
            poll.check();
            untouched = kElementsPerPoll;
        }
    }
    std::copy(beta.begin(), beta.end(), in.beta);
    std::copy(u.begin(), u.end(), in.u);
    return result;
}

template SmoResult solve_stored(const StoredProblem<float>&, const SmoStop&, const Level&, Poll&);
template SmoResult solve_stored(const StoredProblem<double>&, const SmoStop&, const Level&, Poll&);

}  // namespace mercer
