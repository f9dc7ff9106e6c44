// Cholesky on every level and in both types: the residual is rounding, the upper triangle and the space between rows
// are left alone, threads change no bit, bad pivots are found where they are, and a poll that throws ends the call.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "algebra/cholesky.hpp"
#include "check.hpp"
#include "simd/dispatch.hpp"

namespace {

using mercer::Level;

template <class T>
struct Matrix {
    std::int64_t rows, stride;
    std::vector<T> values;
    Matrix(std::int64_t rows, std::int64_t columns, std::int64_t gap = 0, T fill = T{0})
        : rows(rows), stride(columns + gap), values(static_cast<std::size_t>(rows * stride), fill) {}
    T& operator()(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * stride + j)]; }
    T operator()(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i * stride + j)]; }
    bool operator==(const Matrix& other) const {
        return std::memcmp(values.data(), other.values.data(), values.size() * sizeof(T)) == 0;
    }
};

template <class T>
constexpr T kMark = std::numeric_limits<T>::quiet_NaN();

// A Gram matrix of few features plus a diagonal, its lower triangle only; marks elsewhere, which must not be read.
template <class T>
Matrix<T> definite(std::int64_t n, std::int64_t gap) {
    std::mt19937_64 random(static_cast<std::uint64_t>(n));
    std::normal_distribution<double> normal;
    constexpr std::int64_t d = 7;
    std::vector<double> x(static_cast<std::size_t>(n * d));
    for (double& value : x) value = normal(random);
    Matrix<T> a(n, n, gap, kMark<T>);
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) {
            double sum = i == j ? 3.0 : 0.0;
            const double *u = x.data() + i * d, *v = x.data() + j * d;
            for (std::int64_t k = 0; k < d; ++k) sum += u[k] * v[k];
            a(i, j) = static_cast<T>(sum);
        }
    }
    return a;
}

template <class T>
std::int64_t factor(Matrix<T>& a, const Level& level, int n_threads) {
    mercer::Poll poll;
    return mercer::cholesky(a.values.data(), a.stride, a.rows, {n_threads, level, poll});
}

template <class T>
Matrix<T> solve(const Matrix<T>& l, Matrix<T> b, const Level& level, int n_threads) {
    mercer::Poll poll;
    mercer::cholesky_solve(l.values.data(), l.stride, l.rows, b.values.data(), b.stride, {n_threads, level, poll});
    return b;
}

template <class T>
void check_factor(std::int64_t n, const Matrix<T>& a, const Matrix<T>& l) {
    constexpr auto eps = static_cast<double>(std::numeric_limits<T>::epsilon());
    double worst = 0.0;
    bool left_alone = true;
    for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) {
            double sum = static_cast<double>(a(i, j)), size = std::abs(sum);
            for (std::int64_t k = 0; k <= j; ++k) {
                const double product = static_cast<double>(l(i, k)) * static_cast<double>(l(j, k));
                sum -= product;
                size += std::abs(product);
            }
            const double error = std::abs(sum) / size;
            worst = error <= worst ? worst : error;  // and where it is not a number
        }
        for (std::int64_t j = i + 1; j < l.stride; ++j) left_alone = left_alone && std::isnan(l(i, j));
    }
    CHECK(worst < eps * (8.0 + 0.2 * static_cast<double>(n)));
    CHECK(left_alone);
}

template <class T>
void check_solution(std::int64_t n, const Matrix<T>& a, const Matrix<T>& b, const Matrix<T>& x) {
    constexpr auto eps = static_cast<double>(std::numeric_limits<T>::epsilon());
    double worst = 0.0;
    for (std::int64_t c = 0; c < b.stride; ++c) {
        for (std::int64_t i = 0; i < n; ++i) {
            double sum = static_cast<double>(b(i, c)), size = std::abs(sum);
            for (std::int64_t j = 0; j < n; ++j) {
                const double product = static_cast<double>(i < j ? a(j, i) : a(i, j)) * static_cast<double>(x(j, c));
                sum -= product;
                size += std::abs(product);
            }
            const double error = std::abs(sum) / size;
            worst = error <= worst ? worst : error;
        }
    }
    CHECK(worst < eps * (32.0 + 4.0 * static_cast<double>(n)));
}

template <class T>
void test_definite(const Level& level, std::int64_t n, std::int64_t gap, std::int64_t m) {
    const Matrix<T> a = definite<T>(n, gap);
    Matrix<T> l = a, shared = a;
    CHECK(factor(l, level, 1) == -1);
    CHECK(factor(shared, level, 2) == -1);
    CHECK(l == shared);
    check_factor(n, a, l);

    Matrix<T> b(n, m);
    std::mt19937_64 random(2);
    std::normal_distribution<double> normal;
    for (T& value : b.values) value = static_cast<T>(normal(random));
    const Matrix<T> x = solve(l, b, level, 1);
    CHECK(x == solve(l, b, level, 2));
    check_solution(n, a, b, x);
}

// Too large for check_factor: A v against L (L' v), both in double.
template <class T>
void test_large(const Level& level, std::int64_t n) {
    const Matrix<T> a = definite<T>(n, 3);
    Matrix<T> l = a, shared = a;
    CHECK(factor(l, level, 1) == -1);
    CHECK(factor(shared, level, 3) == -1);
    CHECK(l == shared);
    const auto size = static_cast<std::size_t>(n);
    std::vector<double> v(size), expected(size), found(size), inner(size);
    std::mt19937_64 random(3);
    std::normal_distribution<double> normal;
    for (double& value : v) value = normal(random);
    double scale = 0.0, worst = 0.0;
    for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const auto row = static_cast<std::int64_t>(i), column = static_cast<std::int64_t>(j);
            const auto value = static_cast<double>(a(row, column));
            expected[i] += value * v[j];
            if (j < i) expected[j] += value * v[i];
            inner[j] += static_cast<double>(l(row, column)) * v[i];
        }
    }
    for (std::size_t i = 0; i < size; ++i) {
        const T* row = l.values.data() + static_cast<std::int64_t>(i) * l.stride;
        for (std::size_t j = 0; j <= i; ++j) found[i] += static_cast<double>(row[j]) * inner[j];
        scale = std::max(scale, std::abs(expected[i]));
        const double error = std::abs(found[i] - expected[i]);
        worst = error <= worst ? worst : error;
    }
    CHECK(worst < 100.0 * static_cast<double>(std::numeric_limits<T>::epsilon()) * scale);
}

template <class T>
void test_bad_pivots(const Level& level, std::int64_t n) {
    for (const std::int64_t bad : {std::int64_t{0}, n / 3, n / 2, n - 2, n - 1}) {
        if (bad < 0) continue;
        for (const T pivot : {T{-1}, kMark<T>, -std::numeric_limits<T>::infinity()}) {
            Matrix<T> a = definite<T>(n, 0);
            a(bad, bad) = pivot;
            CHECK(factor(a, level, 2) == bad);
        }
    }
    Matrix<T> zero(n, n);
    CHECK(factor(zero, level, 2) == 0);
    Matrix<T> identity(n, n);
    for (std::int64_t i = 0; i < n; ++i) identity(i, i) = T{1};
    Matrix<T> copy = identity;
    CHECK(factor(copy, level, 2) == -1);
    CHECK(copy == identity);
    identity(n - 1, n - 1) = T{0};
    CHECK(factor(identity, level, 2) == n - 1);
}

template <class T>
void test_level(const Level& level) {
    Matrix<T> nothing(0, 0);
    CHECK(factor(nothing, level, 2) == -1);
    for (std::int64_t n = 1; n <= 40; ++n) test_definite<T>(level, n, n % 4, 1 + n % 3);
    for (const std::int64_t n : {47,  48,  49,  95,  96,  97,  107, 108, 109, 143, 144, 191, 192,
                                 193, 194, 203, 204, 205, 239, 240, 241, 287, 288, 289, 299, 300}) {
        test_definite<T>(level, n, n % 3, 1 + n % 5);
    }
    // More right-hand sides than a panel holds, and enough work to be shared.
    for (const std::int64_t m : {1, 31, 32, 33, 100}) test_definite<T>(level, 130, 0, m);
    test_definite<T>(level, 700, 5, 40);
    test_large<T>(level, 1541);  // wider blocks
    for (const std::int64_t n : {1, 5, 12, 13, 96, 193, 300}) test_bad_pivots<T>(level, n);
}

// The last call on every thread: everything stops, nothing hangs.
void test_poll() {
    struct Interrupt {};
    const Level& level = mercer::level();
    for (const int n_threads : {1, 2}) {
        mercer::Poll poll([](void*) { throw Interrupt{}; });
        Matrix<double> a(3000, 3000);
        for (std::int64_t i = 0; i < a.rows; ++i) a(i, i) = 1.0;
        bool interrupted = false;
        try {
            // As often as it takes: a fast machine may be done before the first question.
            for (int round = 0; round < 1000; ++round) {
                mercer::cholesky(a.values.data(), a.stride, a.rows, {n_threads, level, poll});
            }
        } catch (const Interrupt&) {
            interrupted = true;
        }
        CHECK(interrupted);
    }
}

}  // namespace

int main() {
    for (const Level* level : mercer::levels()) {
        test_level<float>(*level);
        test_level<double>(*level);
    }
    test_poll();
    std::printf("cholesky: %s\n", failures == 0 ? "passed" : "FAILED");
    return failures == 0 ? 0 : 1;
}
