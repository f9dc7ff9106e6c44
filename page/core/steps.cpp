#include "steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mercer::page {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A direction of less curvature than this share of the two diagonal entries is taken to have none.
constexpr double kNoCurvature = 1e-14;

struct State {
    const Problem& problem;
    double C;
    Vector alpha, g;

    double y(std::size_t i) const { return problem.p[i]; }
    double k(std::size_t i, std::size_t j) const { return problem.kernel[i * problem.m + j]; }
    double h(std::size_t i) const { return y(i) * g[i]; }
    bool up(std::size_t i) const { return y(i) > 0 ? alpha[i] < C : alpha[i] > 0; }
    bool down(std::size_t i) const { return y(i) > 0 ? alpha[i] > 0 : alpha[i] < C; }

    double gain(std::size_t i, std::size_t j) const {
        const double ahead = h(i) - h(j);
        if (!up(i) || !down(j) || !(ahead > 0)) return 0.0;
        const double diagonal = k(i, i) + k(j, j);
        return ahead * ahead / (2.0 * std::max(diagonal - 2.0 * k(i, j), kNoCurvature * diagonal + 1e-300));
    }

    double violation(double* b) const {
        double top = -kInfinity, bottom = kInfinity, sum = 0.0;
        std::size_t free = 0;
        for (std::size_t i = 0; i < alpha.size(); ++i) {
            if (up(i)) top = std::max(top, h(i));
            if (down(i)) bottom = std::min(bottom, h(i));
            if (up(i) && down(i)) {
                sum += h(i);
                ++free;
            }
        }
        *b = free > 0 ? sum / static_cast<double>(free) : 0.5 * (top + bottom);
        return std::max(0.0, top - bottom);
    }
};

void choose(const State& state, Rule rule, std::size_t* i, std::size_t* j) {
    const std::size_t n = state.alpha.size();
    double top = -kInfinity, bottom = kInfinity, best = -1.0;
    for (std::size_t v = 0; v < n; ++v) {
        if (state.up(v) && state.h(v) > top) {
            top = state.h(v);
            *i = v;
        }
    }
    if (rule == kMostViolating) {
        for (std::size_t v = 0; v < n; ++v) {
            if (state.down(v) && state.h(v) < bottom) {
                bottom = state.h(v);
                *j = v;
            }
        }
        return;
    }
    const std::size_t first = rule == kSecondOrder ? *i : 0, last = rule == kSecondOrder ? *i + 1 : n;
    for (std::size_t v = first; v < last; ++v) {
        for (std::size_t w = 0; w < n; ++w) {
            const double gain = state.gain(v, w);
            if (gain > best) {
                best = gain;
                *i = v;
                *j = w;
            }
        }
    }
}

// A step that uses all of its room ends on the bound exactly.
double onto(double value, bool at_end, bool upwards, double C) { return !at_end ? value : upwards ? C : 0.0; }

}  // namespace

Trace trace(const Problem& problem, double C, Rule rule, double tol, std::size_t most) {
    const std::size_t n = problem.n();
    State state{problem, C, Vector(n, 0.0), Vector(n, 1.0)};
    Trace out;
    double b = 0.0, before = 0.0;
    while (out.steps.size() < most && state.violation(&b) > tol) {
        std::size_t i = 0, j = 0;
        choose(state, rule, &i, &j);
        const double yi = state.y(i), yj = state.y(j);
        const double room_i = yi > 0 ? C - state.alpha[i] : state.alpha[i];
        const double room_j = yj > 0 ? state.alpha[j] : C - state.alpha[j];
        const double diagonal = state.k(i, i) + state.k(j, j), curvature = diagonal - 2.0 * state.k(i, j);
        const double newton = curvature <= kNoCurvature * diagonal ? kInfinity : (state.h(i) - state.h(j)) / curvature;
        const double size = std::min({room_i, room_j, newton});
        if (size == kInfinity) break;  // no box, and nothing bends: there is no hard margin
        for (std::size_t v = 0; v < n; ++v) {
            state.g[v] += -size * state.y(v) * state.k(i, v) + size * state.y(v) * state.k(j, v);
        }
        Step step{static_cast<int>(i), static_cast<int>(j), room_i, room_j, newton, size, 0.0, 0.0, 0.0, 0.0,
                  state.alpha[i], state.alpha[j]};
        state.alpha[i] = onto(state.alpha[i] + yi * size, room_i == size, yi > 0, C);
        state.alpha[j] = onto(state.alpha[j] - yj * size, room_j == size, yj < 0, C);
        double sum = 0.0, energy = 0.0;
        for (std::size_t v = 0; v < n; ++v) {
            sum += state.alpha[v];
            energy += state.alpha[v] * (1.0 - state.g[v]);
        }
        step.dual = sum - 0.5 * energy;
        step.gain = step.dual - before;
        before = step.dual;
        step.violation = state.violation(&step.b);
        out.steps.push_back(step);
        out.alpha.push_back(state.alpha);
    }
    out.converged = state.violation(&b) <= tol;
    return out;
}

}  // namespace mercer::page
