// The loops of src/core/simd that the page needs, compiled for WebAssembly's 128 bits; the rest of the table is empty.
#include "simd/level.hpp"

#include "simd/cholesky_tiles.hpp"
#include "simd/homotopy_passes.hpp"
#include "simd/linear_passes.hpp"
#include "simd/smo_passes.hpp"
#include "simd/tiles.hpp"

namespace mercer {

extern const Level level_plain;
constinit const Level level_plain = {
    .name = "plain",
    .smo_double = smo_passes<double>(),
    .tiles_double = tiles<double>(),
    .cholesky_double = cholesky_tiles<double>(),
    .linear_double = linear_passes<double>(),
    .homotopy = homotopy_passes(),
};

}  // namespace mercer
