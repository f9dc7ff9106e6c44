// Samples made of arrays that are already prepared, whose memory they share, and the norms of exact ones.
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "bind/samples.hpp"

namespace {

// Offsets at which samples begin among `stored` elements, and the end; checked.
Vector<const std::int64_t> starts_of(AnyArray starts, std::size_t stored) {
    const auto out = vector<const std::int64_t>(starts, "starts");
    if (out.shape(0) == 0) refuse("starts", "must have one element more than there are samples");
    const auto n = static_cast<std::int64_t>(out.shape(0)) - 1;
    if (!mercer::is_indptr(out.data(), n, static_cast<std::int64_t>(stored))) {
        refuse("starts", "must not decrease and must stay between 0 and the number of stored elements");
    }
    return out;
}

std::unique_ptr<Samples> dense_samples(AnyArray rows, AnyArray norms, int ending, AnyArray numbers,
                                       int n_threads) {
    std::unique_ptr<Samples> out;
    with_matrix<float, double>(rows, "rows", [&](const auto& x) {
        using T = Element<decltype(x)>;
        nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu> contiguous;
        if (!nb::try_cast(rows, contiguous, false)) refuse("rows", "must be C-contiguous");
        const auto norms_ = vector<const T>(norms, "norms", x.shape(0));
        const mercer::DenseSamples<T> samples{contiguous.data(), static_cast<std::int64_t>(x.shape(0)),
                                              static_cast<std::int64_t>(x.shape(1)), norms_.data()};
        out = std::make_unique<Samples>(samples, mercer::dense_endings<T>, ending, numbers, n_threads, contiguous,
                                        norms_);
        return 0;
    });
    return out;
}

template <class T>
std::unique_ptr<Samples> sparse_of(const Vector<const T>& values, AnyArray indices, AnyArray starts,
                                   AnyArray norms, AnyArray lows, std::int64_t d, int ending, AnyArray numbers,
                                   int n_threads) {
    const std::size_t stored = values.shape(0);
    const auto indices_ = vector<const std::int32_t>(indices, "indices", stored);
    const auto starts_ = starts_of(starts, stored);
    const std::size_t n = starts_.shape(0) - 1;
    const auto norms_ = vector<const T>(norms, "norms", n);
    Vector<const T> lows_;
    if (!lows.is_none()) lows_ = vector<const T>(lows, "lows", n);
    if (!mercer::all_indices(indices_.data(), stored, d)) refuse("indices", "holds a feature outside of the range");
    const mercer::SparseSamples<T> samples{values.data(),
                                           indices_.data(),
                                           starts_.data(),
                                           static_cast<std::int64_t>(n),
                                           d,
                                           norms_.data(),
                                           lows_.is_valid() ? lows_.data() : nullptr};
    return std::make_unique<Samples>(samples, mercer::kEndings, ending, numbers, n_threads, values, indices_, starts_,
                                     norms_, lows_);
}

std::unique_ptr<Samples> sparse_samples(AnyArray values, AnyArray indices, AnyArray starts, AnyArray norms,
                                        std::int64_t d, int ending, AnyArray numbers, int n_threads) {
    std::unique_ptr<Samples> out;
    with_vector<float, double>(values, "values", "float32 or float64", [&](const auto& values_) {
        out = sparse_of<Element<decltype(values_)>>(values_, indices, starts, norms, nb::none(), d, ending, numbers,
                                                    n_threads);
    });
    return out;
}

std::unique_ptr<Samples> exact_sparse_samples(AnyArray values, AnyArray indices, AnyArray starts,
                                              AnyArray norms, AnyArray lows, std::int64_t d, int ending,
                                              AnyArray numbers, int n_threads) {
    const auto values_ = vector<const double>(values, "values");
    return sparse_of<double>(values_, indices, starts, norms, lows, d, ending, numbers, n_threads);
}

TupleOf<Doubles, Doubles> exact_norms(AnyArray values, AnyArray starts, bool l1, int n_threads) {
    const auto values_ = vector<const double>(values, "values");
    const auto starts_ = starts_of(starts, values_.shape(0));
    const std::size_t n = starts_.shape(0) - 1;
    check_threads(n_threads);
    std::vector<double> norms(n), lows(n);
    {
        Signals signals;
        const nb::gil_scoped_release unlocked;
        mercer::exact_norms(values_.data(), starts_.data(), static_cast<std::int64_t>(n), l1, norms.data(), lows.data(),
                            {n_threads, mercer::level(), signals.poll()});
    }
    return nb::make_tuple(as_array(std::move(norms)), as_array(std::move(lows)));
}

}  // namespace

void bind_sample_arrays(nb::module_& m) {
    m.def("dense_samples", &dense_samples, "rows"_a, "norms"_a, "ending"_a, "numbers"_a,
          "n_threads"_a, "Samples that share the memory of `rows` and `norms`.");
    m.def("sparse_samples", &sparse_samples, "values"_a, "indices"_a, "starts"_a, "norms"_a,
          "d"_a, "ending"_a, "numbers"_a, "n_threads"_a, "Samples that share the memory of CSR arrays.");
    m.def("exact_sparse_samples", &exact_sparse_samples, "values"_a, "indices"_a, "starts"_a,
          "norms"_a, "lows"_a, "d"_a, "ending"_a, "numbers"_a, "n_threads"_a,
          "CSR samples neither centred nor scaled, whose values are summed in doubled precision.");
    m.def("exact_norms", &exact_norms, "values"_a, "starts"_a, "l1"_a, "n_threads"_a,
          "Half of each sample's squared length, or the sum of its absolute values, as norm + low.");
}
