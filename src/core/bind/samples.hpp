// Prepared samples of either kind and precision as Python holds them (gram/blocks.hpp), with the recipe's ending and the
// arrays they point into. Only the calls of the core are compiled once per kind.
#pragma once

#include <algorithm>
#include <memory>
#include <tuple>
#include <type_traits>
#include <variant>

#include "bind/arguments.hpp"
#include "gram/blocks.hpp"
#include "simd/dispatch.hpp"
#include "simd/level_entries.hpp"

using AnySamples = std::variant<mercer::DenseSamples<float>, mercer::DenseSamples<double>, mercer::SparseSamples<float>,
                                mercer::SparseSamples<double>>;

template <class Kind>
inline constexpr bool is_dense = false;
template <class T>
inline constexpr bool is_dense<mercer::DenseSamples<T>> = true;

template <class Kind>
using ValueOf = std::remove_const_t<std::remove_pointer_t<decltype(Kind::norms)>>;

struct Samples {
    template <class Kind, class... Arrays>
    Samples(const Kind& samples, int n_endings, int ending_, AnyArray numbers_, int n_threads_,
            const Arrays&... arrays)
        : any(samples),
          kept(std::make_shared<std::tuple<Arrays...>>(arrays...)),
          ending(ending_),
          n_threads(n_threads_) {
        if (ending < 0 || ending >= n_endings) refuse("ending", "is not one of the known endings");
        const auto given = vector<const double>(numbers_, "numbers", mercer::kNumbers);
        std::copy_n(given.data(), mercer::kNumbers, numbers);
    }

    AnySamples any;
    std::shared_ptr<const void> kept;
    int ending, n_threads;
    double numbers[mercer::kNumbers] = {};
};

void bind_sample_arrays(nb::module_& m);
void bind_pairs(nb::class_<Samples>& samples);
