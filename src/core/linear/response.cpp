// Sums over the samples, by chunks whose size fixes the order of summation.
#include "linear/response.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "algebra/rounding.hpp"
#include "threads/pool.hpp"

namespace mercer {
namespace {

// Samples per chunk of work, and independent sums within one, which hide the latency of additions.
constexpr std::int64_t kSamplesPerChunk = 1 << 13;
constexpr std::int64_t kLanes = 8;

// r moved towards zero by `width`, but not past it; without a branch.
inline double shrunk_straight(double r, double width) { return std::max(r - width, 0.0) + std::min(r + width, 0.0); }

inline double respond(const SmoothedLosses& to, std::int64_t i, double f) {
    return std::min(std::max(shrunk_straight(to.q[i] - f, to.epsilon[i]) * to.inverse[i], to.lower[i]), to.upper[i]);
}

}  // namespace

Response linear_response(const SmoothedLosses& samples, const double* p, const double* d, const double* f, double* t,
                         int n_threads, Poll& poll) {
    std::vector<Response> parts(static_cast<std::size_t>(ceil_div(samples.n, kSamplesPerChunk)));
    parallel_for(
        static_cast<std::int64_t>(parts.size()), n_threads,
        [&](std::int64_t c) {
            Response sum{};
            const std::int64_t end = std::min(samples.n, (c + 1) * kSamplesPerChunk);
            for (std::int64_t i = c * kSamplesPerChunk; i < end; ++i) {
                const double lower = samples.lower[i], upper = samples.upper[i], epsilon = samples.epsilon[i];
                const double r = p[i] - f[i], beyond = shrunk_straight(r, epsilon);
                const double at_bound = beyond > 0.0 ? upper : beyond < 0.0 ? lower : 0.0;
                const double best = d[i] > 0.0 ? std::min(std::max(beyond / d[i], lower), upper) : at_bound;
                const double loss = best * (beyond - 0.5 * d[i] * best);
                const double response = respond(samples, i, f[i]);
                sum.total += response;
                sum.losses += loss;
                sum.shares += loss - response * (r - 0.5 * d[i] * response) + epsilon * std::abs(response);
                t[i] = response;
            }
            parts[static_cast<std::size_t>(c)] = sum;
        },
        poll);
    Response all{};
    for (const Response& part : parts) {
        all.total += part.total;
        all.losses += part.losses;
        all.shares += part.shares;
    }
    return all;
}

double linear_along(const SmoothedLosses& samples, const double* f, const double* move, double step, int n_threads,
                    Poll& poll) {
    std::vector<double> parts(static_cast<std::size_t>(ceil_div(samples.n, kSamplesPerChunk)));
    parallel_for(
        static_cast<std::int64_t>(parts.size()), n_threads,
        [&](std::int64_t c) {
            const std::int64_t end = std::min(samples.n, (c + 1) * kSamplesPerChunk);
            double sums[kLanes] = {};
            std::int64_t i = c * kSamplesPerChunk;
            for (; i + kLanes <= end; i += kLanes) {
                for (std::int64_t l = 0; l < kLanes; ++l) {
                    sums[l] += respond(samples, i + l, f[i + l] + step * move[i + l]) * move[i + l];
                }
            }
            for (; i < end; ++i) sums[0] += respond(samples, i, f[i] + step * move[i]) * move[i];
            parts[static_cast<std::size_t>(c)] = std::accumulate(sums, sums + kLanes, 0.0);
        },
        poll);
    return std::accumulate(parts.begin(), parts.end(), 0.0);
}

}  // namespace mercer
