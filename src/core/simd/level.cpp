// Every loop that profits from wide registers, compiled once per instruction set, whose name is MERCER_LEVEL. No
// standard-library templates in here, and nothing but the table has external linkage.
#include "simd/level.hpp"
#include "simd/cholesky_tiles.hpp"
#include "simd/combine_passes.hpp"
#include "simd/doubled_passes.hpp"
#include "simd/homotopy_passes.hpp"
#include "simd/joint_passes.hpp"
#include "simd/linear_passes.hpp"
#include "simd/normal_tiles.hpp"
#include "simd/shapley_passes.hpp"
#include "simd/smo_passes.hpp"
#include "simd/sparse_tiles.hpp"
#include "simd/square_tiles.hpp"
#include "simd/tiles.hpp"

#define MERCER_JOIN_(a, b) a##b
#define MERCER_JOIN(a, b) MERCER_JOIN_(a, b)
#define MERCER_TEXT_(a) #a
#define MERCER_TEXT(a) MERCER_TEXT_(a)

namespace mercer {

// constinit: an initialiser that runs when the module is loaded would crash an older processor.
extern const Level MERCER_JOIN(level_, MERCER_LEVEL);
constinit const Level MERCER_JOIN(level_, MERCER_LEVEL) = {
    MERCER_TEXT(MERCER_LEVEL),
    smo_passes<float>(),
    smo_passes<double>(),
    tiles<float>(),
    tiles<double>(),
    strips<float>(),
    strips<double>(),
    exact_strips(),
    exact_norm,
    cholesky_tiles<float>(),
    cholesky_tiles<double>(),
    joint_passes<float>(),
    joint_passes<double>(),
    normal_tiles(),
    square_tiles(),
    linear_passes<float>(),
    linear_passes<double>(),
    combine_passes<float>(),
    combine_passes<double>(),
    homotopy_passes(),
    shapley_passes(),
    doubled_passes()};

}  // namespace mercer
