// The entries of a level's table for one element type.
#pragma once

#include <type_traits>

#include "simd/level.hpp"

namespace mercer {

template <class T, class OfFloat, class OfDouble>
const auto& entry_for(const OfFloat& of_float, const OfDouble& of_double) {
    if constexpr (std::is_same_v<T, float>) {
        return of_float;
    } else {
        return of_double;
    }
}

template <class T>
const SmoPasses<T>& smo_passes_of(const Level& level) {
    return entry_for<T>(level.smo_float, level.smo_double);
}

template <class T>
const JointPasses<T>& joint_passes_of(const Level& level) {
    return entry_for<T>(level.joint_float, level.joint_double);
}

template <class T>
const LinearPasses<T>& linear_passes_of(const Level& level) {
    return entry_for<T>(level.linear_float, level.linear_double);
}

template <class T>
const CombinePasses<T>& combine_passes_of(const Level& level) {
    return entry_for<T>(level.combine_float, level.combine_double);
}

template <class T>
const Tiles<T>& tiles_of(const Level& level) {
    return entry_for<T>(level.tiles_float, level.tiles_double);
}

template <class T>
const Strips<T>& strips_of(const Level& level) {
    return entry_for<T>(level.strips_float, level.strips_double);
}

template <class T>
const CholeskyTiles<T>& cholesky_tiles_of(const Level& level) {
    return entry_for<T>(level.cholesky_float, level.cholesky_double);
}

}  // namespace mercer
