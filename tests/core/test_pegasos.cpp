// Pegasos in its four kinds of storage against the algorithm as printed, and draws against a linear search.
#include "solve/pegasos.hpp"

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "check.hpp"
#include "solve/counter_random.hpp"

namespace {

using Doubles = std::vector<double>;
using Index = std::vector<std::int64_t>;

struct Problem {
    std::int64_t n, d;
    Doubles x, y;
    Index draws;
};

Problem make(std::int64_t n, std::int64_t d, std::int64_t steps) {
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    Problem out{n, d, {}, {}, {}};
    for (std::int64_t i = 0; i < n; ++i) {
        double sum = 0.0;
        for (std::int64_t j = 0; j < d; ++j) {
            // The third row is empty, and a third of the other entries are zero.
            const double value =
                i == 2 || random() % 3 == 0 ? 0.0 : static_cast<double>(static_cast<float>(normal(random)));
            out.x.push_back(value);
            sum += value;
        }
        out.y.push_back(sum + 0.5 * normal(random) > 0 ? 1.0 : -1.0);
    }
    for (std::int64_t k = 0; k < steps; ++k) out.draws.push_back(static_cast<std::int64_t>(random()) % n);
    return out;
}

// theta, and the sum of theta / t, with a constant feature 1 at the end.
struct Plain {
    Doubles theta, total;
};

Plain as_printed(const Problem& p, double lam, bool project) {
    const auto m = static_cast<std::size_t>(p.d + 1);
    Plain out{Doubles(m), Doubles(m)};
    const auto entry = [&](std::int64_t i, std::size_t j) {
        return j + 1 == m ? 1.0 : p.x[static_cast<std::size_t>(i * p.d) + j];
    };
    for (std::size_t k = 0; k < p.draws.size(); ++k) {
        const double t = static_cast<double>(k + 1);
        const std::int64_t i = p.draws[k];
        double margin = 0.0;
        for (std::size_t j = 0; j < m; ++j) {
            out.total[j] += out.theta[j] / t;
            margin += out.theta[j] / (lam * t) * entry(i, j);
        }
        const double y = p.y[static_cast<std::size_t>(i)];
        if (y * margin >= 1.0) continue;
        double square = 0.0;
        for (std::size_t j = 0; j < m; ++j) {
            out.theta[j] += y * entry(i, j);
            square += out.theta[j] * out.theta[j];
        }
        const double longest = std::sqrt(lam) * (t + 1.0);
        if (project && std::sqrt(square) > longest) {
            for (double& value : out.theta) value *= longest / std::sqrt(square);
        }
    }
    return out;
}

bool close(const Doubles& a, const Doubles& b) {
    double largest = 0.0, difference = 0.0;
    for (std::size_t j = 0; j < a.size(); ++j) {
        largest = std::fmax(largest, std::fabs(b[j]));
        difference = std::fmax(difference, std::fabs(a[j] - b[j]));
    }
    return a.size() == b.size() && difference <= 1e-10 * largest;
}

template <class Rows>
void check_rows(const Problem& p, const Rows& rows, double lam, bool project) {
    const auto m = static_cast<std::size_t>(p.d + 1);
    Doubles theta(m), total(m);
    Index counts(static_cast<std::size_t>(p.n));
    mercer::Poll poll;
    double norm2 = 0.0;
    std::int64_t violations = 0;
    const auto half = static_cast<std::int64_t>(p.draws.size() / 2);
    for (const std::int64_t first : {std::int64_t{0}, half}) {
        const std::int64_t count = first == 0 ? half : static_cast<std::int64_t>(p.draws.size()) - half;
        const mercer::PegasosSteps steps{p.draws.data() + first, count, p.y.data(), lam, first, project, norm2,
                                         counts.data()};
        const auto result = mercer::pegasos(rows, {theta.data(), total.data(), p.d + 1}, steps, poll);
        CHECK(result.done == count);
        CHECK(project || result.scale == 1.0);
        norm2 = result.norm2;
    }
    for (const std::int64_t count : counts) violations += count;
    const Plain expected = as_printed(p, lam, project);
    CHECK(violations > 0);
    CHECK(close(theta, expected.theta));
    CHECK(close(total, expected.total));
}

template <class T, class I>
void check_sparse(const Problem& p, double lam, bool project) {
    std::vector<T> data;
    std::vector<I> indices;
    std::vector<std::int64_t> indptr{0};
    for (std::int64_t i = 0; i < p.n; ++i) {
        for (std::int64_t j = 0; j < p.d; ++j) {
            const double value = p.x[static_cast<std::size_t>(i * p.d + j)];
            if (value == 0.0) continue;
            data.push_back(static_cast<T>(value));
            indices.push_back(static_cast<I>(j));
        }
        indptr.push_back(static_cast<std::int64_t>(data.size()));
    }
    check_rows(p, mercer::PegasosSparse<T, I>{data.data(), indices.data(), indptr.data(), p.d}, lam, project);
}

void check_kernel(const Problem& p, double lam, bool project) {
    const auto n = static_cast<std::size_t>(p.n), d = static_cast<std::size_t>(p.d);
    Doubles K(n * n), u(n), theta(n), total(n);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) {
            for (std::size_t l = 0; l < d; ++l) K[i * n + j] += p.x[i * d + l] * p.x[j * d + l];
        }
    }
    Index slot(n, -1);
    mercer::Poll poll;
    std::int64_t done = 0, stops = 0;
    double norm2 = 0.0;
    const auto count = static_cast<std::int64_t>(p.draws.size());
    while (true) {
        const mercer::PegasosSteps steps{
            p.draws.data() + done, count - done, p.y.data(), lam, done, project, norm2, nullptr};
        const mercer::PegasosKernel rows{K.data(), slot.data(), p.n, 1.0, u.data()};
        const auto result = mercer::pegasos(rows, {theta.data(), total.data(), p.n}, steps, poll);
        done += result.done;
        norm2 = result.norm2;
        if (done == count) break;
        const auto missing = static_cast<std::size_t>(p.draws[static_cast<std::size_t>(done)]);
        CHECK(slot[missing] < 0);
        slot[missing] = static_cast<std::int64_t>(missing);
        ++stops;
    }
    CHECK(stops > 0 && stops <= p.n);
    Doubles w(d + 1), mean(d + 1);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t l = 0; l <= d; ++l) {
            w[l] += theta[i] * (l < d ? p.x[i * d + l] : 1.0);
            mean[l] += total[i] * (l < d ? p.x[i * d + l] : 1.0);
        }
    }
    const Plain expected = as_printed(p, lam, project);
    CHECK(close(w, expected.theta));
    CHECK(close(mean, expected.total));
}

void check_draws() {
    for (const Doubles& weight : {Doubles{1.0}, Doubles{1.0, 1.0, 1.0}, Doubles{1e-12, 5.0, 1e-3, 1e6, 2.0}}) {
        Doubles cumulative;
        double sum = 0.0;
        for (const double w : weight) cumulative.push_back(sum += w);
        Index out(1000);
        mercer::draw_rows(3, 0, 5, 1000, cumulative.data(), static_cast<std::int64_t>(weight.size()), out.data());
        const mercer::CounterRandom random(3, 0);
        bool right = true;
        for (std::size_t k = 0; k < out.size(); ++k) {
            std::size_t i = 0;
            while (i + 1 < weight.size() && cumulative[i] <= random.uniform(k + 5) * sum) ++i;
            right = right && out[k] == static_cast<std::int64_t>(i);
        }
        CHECK(right);
    }
}

// A column that is out of range matters to a run that draws its row, and to every run with as many draws as rows.
void check_columns() {
    const Doubles data{1.0, 1.0, 1.0};
    const std::vector<std::int32_t> indices{0, 2, 1};
    const std::vector<std::int64_t> indptr{0, 1, 2, 3};
    const mercer::PegasosSparse<double, std::int32_t> x{data.data(), indices.data(), indptr.data(), 2};
    const Index without{0, 2}, with{0, 1}, all{0, 0, 0};
    CHECK(mercer::columns_fit(x, 3, without.data(), 2));
    CHECK(!mercer::columns_fit(x, 3, with.data(), 2));
    CHECK(!mercer::columns_fit(x, 3, all.data(), 3));

    const mercer::CounterRandom random(1, 2);
    std::vector<std::uint64_t> bits(5);
    random.fill(7, 5, bits.data());
    for (std::size_t k = 0; k < 5; ++k) CHECK(bits[k] == random.bits(7 + k));
}

}  // namespace

int main() {
    for (const std::int64_t d : {1, 5, 19}) {
        const Problem p = make(23, d, 3000);
        std::vector<float> narrow(p.x.begin(), p.x.end());
        for (const double lam : {1e-3, 0.1}) {
            for (const bool project : {false, true}) {
                check_rows(p, mercer::PegasosDense<double>{p.x.data(), d}, lam, project);
                check_rows(p, mercer::PegasosDense<float>{narrow.data(), d}, lam, project);
                check_sparse<double, std::int32_t>(p, lam, project);
                check_sparse<float, std::int32_t>(p, lam, project);
                check_sparse<double, std::int64_t>(p, lam, project);
                check_sparse<float, std::int64_t>(p, lam, project);
                check_kernel(p, lam, project);
            }
        }
    }
    check_draws();
    check_columns();
    std::printf("pegasos: %s\n", failures == 0 ? "passed" : "FAILED");
    return failures == 0 ? 0 : 1;
}
