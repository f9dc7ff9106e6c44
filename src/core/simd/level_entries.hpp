// The entries of a level's table for one element type.
#pragma once

#include <type_traits>

#include "simd/level.hpp"

namespace mercer {

template <class T>
const SmoPasses<T>& smo_passes_of(const Level& level) {
    if constexpr (std::is_same_v<T, float>) {
        return level.smo_float;
    } else {
        return level.smo_double;
    }
}

template <class T>
const LinearPasses<T>& linear_passes_of(const Level& level) {
    if constexpr (std::is_same_v<T, float>) {
        return level.linear_float;
    } else {
        return level.linear_double;
    }
}

template <class T>
const Tiles<T>& tiles_of(const Level& level) {
    if constexpr (std::is_same_v<T, float>) {
        return level.tiles_float;
    } else {
        return level.tiles_double;
    }
}

template <class T>
const Strips<T>& strips_of(const Level& level) {
    if constexpr (std::is_same_v<T, float>) {
        return level.strips_float;
    } else {
        return level.strips_double;
    }
}

template <class T>
const CholeskyTiles<T>& cholesky_of(const Level& level) {
    if constexpr (std::is_same_v<T, float>) {
        return level.cholesky_float;
    } else {
        return level.cholesky_double;
    }
}

template <class T>
const JointPasses<T>& joint_passes_of(const Level& level) {
    if constexpr (std::is_same_v<T, float>) {
        return level.joint_float;
    } else {
        return level.joint_double;
    }
}

template <class T>
const TablePasses<T>& table_passes_of(const Level& level) {
    if constexpr (std::is_same_v<T, float>) {
        return level.table_float;
    } else {
        return level.table_double;
    }
}

}  // namespace mercer
