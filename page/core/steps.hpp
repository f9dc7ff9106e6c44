// Algorithm 4.2 of Igel's notes, one pair step at a time (mercer/notes/teaching/algorithms.py).
#pragma once

#include <cstdint>

#include "machines.hpp"

namespace mercer::page {

enum Rule { kMostViolating, kMaximumGain, kSecondOrder };

// One step: the pair, how far each may go, the step without a box and the one that was taken; the rest afterwards.
struct Step {
    int i, j;
    double room_i, room_j, newton, size, gain, dual, violation, b;
    double alpha_i, alpha_j;  // before the step
};

struct Trace {
    std::vector<Step> steps;
    std::vector<Vector> alpha;  // after each
    bool converged = false;
};

Trace trace(const Problem& problem, double C, Rule rule, double tol, std::size_t most);

}  // namespace mercer::page
