// A step costs as much as its row has entries, however many features there are. For that, theta is kept as scale * v,
// so that shrinking it costs nothing, and the sum of theta / t as mass * v - late, with mass = sum of scale / t: mass
// counts a term that joins v at step t from the start, and `late` takes the share before t away.
#include "solve/pegasos.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "algebra/array_checks.hpp"
#include "solve/counter_random.hpp"

namespace mercer {
namespace {

// mass * v - late cancels as many digits as v is larger than theta: three at most.
constexpr double kSmallestScale = 0x1p-10;
// Entries touched between two polls: about a millisecond.
constexpr std::int64_t kWork = 1 << 19;

struct Lazy {
    double* v;
    double* total;
    std::vector<double> late;

    explicit Lazy(const PegasosState& state)
        : v(state.theta), total(state.total), late(static_cast<std::size_t>(state.m), 0.0) {}

    void fold(double scale, double mass) {
        for (std::size_t j = 0; j < late.size(); ++j) {
            total[j] += mass * v[j] - late[j];
            v[j] *= scale;
            late[j] = 0.0;
        }
    }
};

template <class T>
class DenseSpace {
public:
    static constexpr bool kKnowsSquares = false;
    DenseSpace(const PegasosDense<T>& x, const PegasosState& state) : x_(x), lazy_(state), bias_(state.m > x.d) {}

    std::int64_t cost(std::int64_t) const { return x_.d; }
    bool at_hand(std::int64_t) const { return true; }
    void fold(double scale, double mass) { lazy_.fold(scale, mass); }

    double inner(std::int64_t i) const {
        const T* x = x_.data + i * x_.d;
        // Eight independent sums hide the latency of additions.
        double sums[8] = {};
        std::int64_t j = 0;
        for (; j + 8 <= x_.d; j += 8) {
            for (int l = 0; l < 8; ++l) sums[l] += static_cast<double>(x[j + l]) * lazy_.v[j + l];
        }
        for (; j < x_.d; ++j) sums[0] += static_cast<double>(x[j]) * lazy_.v[j];
        const double bias = bias_ ? lazy_.v[x_.d] : 0.0;
        return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + bias;
    }

    double square(std::int64_t i) const {
        const T* x = x_.data + i * x_.d;
        double sum = bias_ ? 1.0 : 0.0;
        for (std::int64_t j = 0; j < x_.d; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
        return sum;
    }

    void add(std::int64_t i, double step, double mass) {
        const T* x = x_.data + i * x_.d;
        double* v = lazy_.v;
        double* late = lazy_.late.data();
        for (std::int64_t j = 0; j < x_.d; ++j) {
            const double change = step * static_cast<double>(x[j]);
            v[j] += change;
            late[j] += mass * change;
        }
        if (bias_) {
            v[x_.d] += step;
            late[x_.d] += mass * step;
        }
    }

private:
    PegasosDense<T> x_;
    Lazy lazy_;
    bool bias_;
};

template <class T, class Index>
class SparseSpace {
public:
    static constexpr bool kKnowsSquares = false;
    SparseSpace(const PegasosSparse<T, Index>& x, const PegasosState& state)
        : x_(x), lazy_(state), bias_(state.m > x.d) {}

    std::int64_t cost(std::int64_t i) const { return static_cast<std::int64_t>(x_.indptr[i + 1] - x_.indptr[i]); }
    bool at_hand(std::int64_t) const { return true; }
    void fold(double scale, double mass) { lazy_.fold(scale, mass); }

    double inner(std::int64_t i) const {
        const std::int64_t end = x_.indptr[i + 1];
        double sum = bias_ ? lazy_.v[x_.d] : 0.0, other = 0.0;
        std::int64_t e = x_.indptr[i];
        for (; e + 2 <= end; e += 2) {
            sum += static_cast<double>(x_.data[e]) * lazy_.v[x_.indices[e]];
            other += static_cast<double>(x_.data[e + 1]) * lazy_.v[x_.indices[e + 1]];
        }
        if (e < end) sum += static_cast<double>(x_.data[e]) * lazy_.v[x_.indices[e]];
        return sum + other;
    }

    double square(std::int64_t i) const {
        double sum = bias_ ? 1.0 : 0.0;
        for (std::int64_t e = x_.indptr[i]; e < x_.indptr[i + 1]; ++e) {
            sum += static_cast<double>(x_.data[e]) * static_cast<double>(x_.data[e]);
        }
        return sum;
    }

    void add(std::int64_t i, double step, double mass) {
        double* v = lazy_.v;
        double* late = lazy_.late.data();
        for (std::int64_t e = x_.indptr[i]; e < x_.indptr[i + 1]; ++e) {
            const double change = step * static_cast<double>(x_.data[e]);
            v[x_.indices[e]] += change;
            late[x_.indices[e]] += mass * change;
        }
        if (bias_) {
            v[x_.d] += step;
            late[x_.d] += mass * step;
        }
    }

private:
    PegasosSparse<T, Index> x_;
    Lazy lazy_;
    bool bias_;
};

// Here v are the rows' coefficients: line 6 changes one of them, and updating u = K v is what a step costs.
class KernelSpace {
public:
    static constexpr bool kKnowsSquares = true;  // |theta|^2 is cheap here, so it is always kept up to date
    KernelSpace(const PegasosKernel& x, const PegasosState& state) : x_(x), lazy_(state) {}

    std::int64_t cost(std::int64_t) const { return x_.n / 8; }
    bool at_hand(std::int64_t i) const { return x_.slot[i] >= 0; }
    double inner(std::int64_t i) const { return x_.u[i]; }
    double square(std::int64_t i) const { return row(i)[i] + x_.shift; }

    void fold(double scale, double mass) {
        lazy_.fold(scale, mass);
        if (scale != 1.0) {
            for (std::int64_t j = 0; j < x_.n; ++j) x_.u[j] *= scale;
        }
    }

    void add(std::int64_t i, double step, double mass) {
        const double* k = row(i);
        for (std::int64_t j = 0; j < x_.n; ++j) x_.u[j] += step * (k[j] + x_.shift);
        lazy_.v[i] += step;
        lazy_.late[static_cast<std::size_t>(i)] += mass * step;
    }

private:
    const double* row(std::int64_t i) const { return x_.rows + x_.slot[i] * x_.n; }

    PegasosKernel x_;
    Lazy lazy_;
};

template <class Space>
PegasosResult run(Space space, const PegasosSteps& steps, Poll& poll) {
    PegasosResult result;
    result.norm2 = steps.norm2;
    double scale = 1.0, mass = 0.0;
    const auto fold = [&] {
        space.fold(scale, mass);
        result.mass += result.scale * mass;
        result.scale *= scale;
        scale = 1.0, mass = 0.0;
    };
    std::int64_t work = 0;
    for (; result.done < steps.count; ++result.done) {    // line 2
        const std::int64_t i = steps.draws[result.done];  // line 4
        if ((work += space.cost(i) + 8) > kWork) {
            work = 0;
            poll.check();
        }
        const double t = static_cast<double>(steps.t + result.done + 1);
        const double y = steps.y[i];
        const double f = scale * space.inner(i);      // lam t <w, x_i>: line 3 without w
        const bool violates = y * f < steps.lam * t;  // line 5
        if (violates && !space.at_hand(i)) break;
        mass += scale / t;  // line 7: this w joins the mean
        if (!violates) continue;
        space.add(i, y / scale, mass);  // line 6
        if (steps.counts != nullptr) ++steps.counts[i];
        if (!steps.project && !Space::kKnowsSquares) continue;
        result.norm2 += 2.0 * y * f + space.square(i);
        const double longest = steps.lam * (t + 1.0) * (t + 1.0);  // |w| <= 1/sqrt(lam) at the next line 3
        if (steps.project && result.norm2 > longest) {
            scale *= std::sqrt(longest / result.norm2);
            result.norm2 = longest;
            if (scale < kSmallestScale) fold();
        }
    }
    fold();
    return result;
}

}  // namespace

template <class T>
PegasosResult pegasos(const PegasosDense<T>& x, const PegasosState& state, const PegasosSteps& steps, Poll& poll) {
    return run(DenseSpace<T>(x, state), steps, poll);
}

template <class T, class Index>
PegasosResult pegasos(const PegasosSparse<T, Index>& x, const PegasosState& state, const PegasosSteps& steps,
                      Poll& poll) {
    return run(SparseSpace<T, Index>(x, state), steps, poll);
}

PegasosResult pegasos(const PegasosKernel& x, const PegasosState& state, const PegasosSteps& steps, Poll& poll) {
    return run(KernelSpace(x, state), steps, poll);
}

template <class T, class Index>
bool columns_fit(const PegasosSparse<T, Index>& x, std::int64_t n, const std::int64_t* draws,
                 std::int64_t count) {
    const auto fit = [&](std::int64_t from, std::int64_t to) {
        return all_indices(x.indices + from, static_cast<std::size_t>(to - from), x.d);
    };
    if (count >= n) return fit(x.indptr[0], x.indptr[n]);
    return std::all_of(draws, draws + count, [&](std::int64_t i) { return fit(x.indptr[i], x.indptr[i + 1]); });
}

void draw_rows(std::uint64_t seed, std::uint64_t stream, std::int64_t first, std::int64_t count,
               const double* cumulative, std::int64_t n, std::int64_t* out) {
    const CounterRandom random(seed, stream);
    const double total = cumulative[n - 1], cells = static_cast<double>(n);
    // A table of where to begin makes the search constant on average (Chen and Asau 1974).
    std::vector<std::int64_t> begin(static_cast<std::size_t>(n));
    for (std::int64_t g = 0, i = 0; g < n; ++g) {
        while (i + 1 < n && cumulative[i] <= static_cast<double>(g) / cells * total) ++i;
        begin[static_cast<std::size_t>(g)] = i;
    }
    for (std::int64_t k = 0; k < count; ++k) {
        const double u = random.uniform(static_cast<std::uint64_t>(first) + static_cast<std::uint64_t>(k));
        const double target = u * total;
        std::int64_t i = begin[static_cast<std::size_t>(std::min(n - 1, static_cast<std::int64_t>(u * cells)))];
        while (i > 0 && cumulative[i - 1] > target) --i;
        while (i + 1 < n && cumulative[i] <= target) ++i;
        out[k] = i;
    }
}

#define MERCER_FOR_INDICES(T, Index)                                                                         \
    template PegasosResult pegasos(const PegasosSparse<T, Index>&, const PegasosState&, const PegasosSteps&, \
                                   Poll&);                                                                            \
    template bool columns_fit(const PegasosSparse<T, Index>&, std::int64_t, const std::int64_t*, std::int64_t);
#define MERCER_FOR_VALUES(T)                                                                                 \
    template PegasosResult pegasos(const PegasosDense<T>&, const PegasosState&, const PegasosSteps&, Poll&); \
    MERCER_FOR_INDICES(T, std::int32_t) \
    MERCER_FOR_INDICES(T, std::int64_t)
MERCER_FOR_VALUES(float)
MERCER_FOR_VALUES(double)
#undef MERCER_FOR_VALUES
#undef MERCER_FOR_INDICES

}  // namespace mercer
