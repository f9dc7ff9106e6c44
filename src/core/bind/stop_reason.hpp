// Why a solver ended, in the words that Python knows.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>

#include "solve/stop_reason.hpp"

inline nanobind::str word_of(mercer::StopReason reason) {
    switch (reason) {
        case mercer::StopReason::converged: return nanobind::str("converged");
        case mercer::StopReason::max_steps: return nanobind::str("max_steps");
        case mercer::StopReason::max_epochs: return nanobind::str("max_epochs");
        case mercer::StopReason::max_seconds: return nanobind::str("max_seconds");
        case mercer::StopReason::stalled: return nanobind::str("stalled");
        case mercer::StopReason::unbounded: return nanobind::str("unbounded");
        case mercer::StopReason::nonfinite: return nanobind::str("nonfinite");
        case mercer::StopReason::unsettled: return nanobind::str("unsettled");
    }
    throw std::logic_error("a reason without a word");
}
