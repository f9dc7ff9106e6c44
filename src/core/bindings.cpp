// The only file that knows Python: arrays come in, are checked for what memory safety needs, and the core runs without the
// interpreter's lock.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "blocks.hpp"
#include "dispatch.hpp"
#include "interrupt.hpp"
#include "row_hash.hpp"
#include "smo.hpp"
#include "tables.hpp"
#include "thread_limit.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

[[noreturn]] void refuse(const char* name, const std::string& why) {
    throw nb::value_error((std::string(name) + " " + why).c_str());
}

template <class T>
const char* type_name() {
    if constexpr (std::is_same_v<T, double>) return "float64";
    if constexpr (std::is_same_v<T, float>) return "float32";
    if constexpr (std::is_same_v<T, std::int32_t>) return "int32";
    return "int64";
}

// Loads through a pointer that is not a multiple of the element size are undefined.
template <class Array>
void check_alignment(const Array& array, const char* name) {
    using T = std::remove_const_t<typename Array::Scalar>;
    if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(T) != 0) refuse(name, "is not aligned; copy it first");
}

template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;

template <class T>
Vector<T> vector(nb::handle object, const char* name) {
    Vector<T> out;
    if (!nb::try_cast(object, out, false)) {
        using Plain = std::remove_const_t<T>;
        refuse(name, std::string("must be a contiguous one-dimensional ") + type_name<Plain>() + " array" +
                         (std::is_const_v<T> ? "" : " that can be written to"));
    }
    check_alignment(out, name);
    return out;
}

template <class T>
Vector<T> vector(nb::handle object, const char* name, std::size_t size) {
    Vector<T> out = vector<T>(object, name);
    if (out.shape(0) != size) {
        refuse(name, "has " + std::to_string(out.shape(0)) + " elements, but " + std::to_string(size) + " are needed");
    }
    return out;
}

// Calls use(T array) for the first T of Types the object is a matrix of.
template <class... Types, class Use>
auto with_matrix(nb::handle object, const char* name, Use use) {
    using Result = std::common_type_t<std::invoke_result_t<Use, Matrix<Types>>...>;
    Result result{};
    const auto attempt = [&]<class T>(T*) {
        Matrix<T> matrix;
        if (!nb::try_cast(object, matrix, false)) return false;
        check_alignment(matrix, name);
        result = use(matrix);
        return true;
    };
    if (!(attempt(static_cast<Types*>(nullptr)) || ...)) {
        refuse(name, "must be a two-dimensional float32 or float64 array");
    }
    return result;
}

template <class... Types, class Use>
void with_vector(nb::handle object, const char* name, const char* types, Use use) {
    const auto attempt = [&]<class T>(T*) {
        Vector<const T> array;
        if (!nb::try_cast(object, array, false)) return false;
        check_alignment(array, name);
        use(array);
        return true;
    };
    if (!(attempt(static_cast<Types*>(nullptr)) || ...)) {
        refuse(name, std::string("must be a contiguous one-dimensional ") + types + " array");
    }
}

// Signals are Python's business, and only its main thread handles them: elsewhere asking once is enough, and a fit in a
// worker thread does not queue for the lock again and again.
class Signals {
public:
    Signals() : poll_(&Signals::ask, this) {}
    mercer::Poll& poll() { return poll_; }

private:
    enum class Thread { unknown, main, other } thread_ = Thread::unknown;
    mercer::Poll poll_;

    static bool finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
        return Py_IsFinalizing() != 0;
#else
        return _Py_IsFinalizing() != 0;
#endif
    }

    static void ask(void* self) {
        auto& thread = static_cast<Signals*>(self)->thread_;
        if (thread == Thread::other || finalizing()) return;
        const nb::gil_scoped_acquire lock;
        if (thread == Thread::unknown) {
            const nb::module_ threading = nb::module_::import_("threading");
            const bool main = threading.attr("get_ident")().equal(threading.attr("main_thread")().attr("ident"));
            thread = main ? Thread::main : Thread::other;
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
};

nb::tuple smo(nb::handle K, nb::handle h, nb::handle beta, nb::handle lower, nb::handle upper, nb::handle d,
              nb::handle group, double tol, std::int64_t max_steps, double max_seconds) {
    const mercer::SmoResult result = with_matrix<float, double>(K, "K", [&](const auto& kernel) {
        using T = std::remove_const_t<typename std::decay_t<decltype(kernel)>::Scalar>;
        const std::size_t q = kernel.shape(0);
        if (kernel.shape(1) != q) refuse("K", "must be square");
        if (q > 1 && kernel.stride(1) != 1) refuse("K", "must have contiguous rows");
        const auto h_ = vector<const double>(h, "h", q);
        const auto beta_ = vector<double>(beta, "beta", q);
        const auto lower_ = vector<const double>(lower, "lower", q);
        const auto upper_ = vector<const double>(upper, "upper", q);
        const auto d_ = vector<const double>(d, "d", q);
        const auto group_ = vector<const std::int32_t>(group, "group", q);
        for (std::size_t i = 0; i < q; ++i) {
            if (group_.data()[i] < -1) refuse("group", "must hold group numbers from 0, or -1 for no equality");
        }
        const mercer::SmoProblem<T> problem{.kernel = kernel.data(),
                                            .stride = static_cast<std::ptrdiff_t>(kernel.stride(0)),
                                            .q = static_cast<std::int64_t>(q),
                                            .h = h_.data(),
                                            .beta = beta_.data(),
                                            .lower = lower_.data(),
                                            .upper = upper_.data(),
                                            .d = d_.data(),
                                            .group = group_.data()};
        const mercer::Level& level = mercer::level();
        Signals signals;
        const nb::gil_scoped_release unlocked;
        return mercer::smo(problem, {tol, max_steps, max_seconds}, level, signals.poll());
    });
    return nb::make_tuple(result.steps, result.violation, result.reason);
}

using Hashes = nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>;

Hashes hand_over(std::unique_ptr<std::uint64_t[]> values, std::size_t n) {
    const nb::capsule owner(values.get(), [](void* p) noexcept { delete[] static_cast<std::uint64_t*>(p); });
    return Hashes(values.release(), {n}, owner);
}

Hashes hash_rows(nb::handle X, int n_threads) {
    return with_matrix<float, double>(X, "X", [&](const auto& x) {
        using T = std::remove_const_t<typename std::decay_t<decltype(x)>::Scalar>;
        auto out = std::make_unique<std::uint64_t[]>(x.shape(0));
        const mercer::DenseRows<T> rows{x.data(), static_cast<std::int64_t>(x.shape(0)),
                                        static_cast<std::int64_t>(x.shape(1)), static_cast<std::ptrdiff_t>(x.stride(0)),
                                        static_cast<std::ptrdiff_t>(x.stride(1))};
        {
            Signals signals;
            const nb::gil_scoped_release unlocked;
            mercer::hash_rows(rows, n_threads, signals.poll(), out.get());
        }
        return hand_over(std::move(out), x.shape(0));
    });
}

Hashes hash_rows_csr(nb::handle data, nb::handle indices, nb::handle indptr, int n_threads) {
    std::unique_ptr<std::uint64_t[]> out;
    std::size_t rows = 0;
    with_vector<float, double>(data, "data", "float32 or float64", [&](const auto& data_) {
        with_vector<std::int32_t, std::int64_t>(indices, "indices", "int32 or int64", [&](const auto& indices_) {
            with_vector<std::int32_t, std::int64_t>(indptr, "indptr", "int32 or int64", [&](const auto& indptr_) {
                const std::size_t stored = data_.shape(0);
                if (indices_.shape(0) != stored) refuse("indices", "must have as many elements as data");
                if (indptr_.shape(0) == 0) refuse("indptr", "must have one element more than there are rows");
                rows = indptr_.shape(0) - 1;
                const auto n = static_cast<std::int64_t>(rows);
                if (!mercer::check_indptr(indptr_.data(), n, static_cast<std::int64_t>(stored))) {
                    refuse("indptr", "must not decrease and must stay between 0 and the number of stored elements");
                }
                out = std::make_unique<std::uint64_t[]>(rows);
                Signals signals;
                const nb::gil_scoped_release unlocked;
                mercer::hash_rows(data_.data(), indices_.data(), indptr_.data(), n, n_threads, signals.poll(), out.get());
            });
        });
    });
    return hand_over(std::move(out), rows);
}

// --- blocks of the kernel matrix ---------------------------------------------------------------------------------------

// What every block call needs besides its samples: the ending and its numbers, and who does the work.
struct Work {
    Work(int ending_, nb::handle numbers_, int n_threads) : ending(ending_), count(n_threads), level(mercer::level()) {
        if (ending < 0 || ending >= mercer::kEndings) refuse("ending", "is not one of the known endings");
        const auto given = vector<const double>(numbers_, "numbers", mercer::kNumbers);
        std::copy_n(given.data(), mercer::kNumbers, numbers);
    }
    mercer::Threads threads() { return {count, level, signals.poll()}; }

    int ending, count;
    double numbers[mercer::kNumbers] = {};
    const mercer::Level& level;
    Signals signals;
};

void check_range(const std::int64_t* index, std::size_t count, std::int64_t n, const char* name) {
    for (std::size_t i = 0; i < count; ++i) {
        if (index[i] < 0 || index[i] >= n) refuse(name, "holds an index outside of the samples");
    }
}

template <class T>
using Output = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

std::int64_t up_to(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

template <class T>
Output<T> output(nb::handle object, std::int64_t rows, std::int64_t columns) {
    Output<T> out;
    if (!nb::try_cast(object, out, false)) refuse("out", "must be a writable matrix of the samples' type");
    if (static_cast<std::int64_t>(out.shape(0)) < rows || out.stride(0) < columns || out.stride(1) != 1 ||
        static_cast<std::int64_t>(out.shape(1)) < columns) {
        refuse("out", "must have room for whole tiles: " + std::to_string(rows) + " rows of " + std::to_string(columns));
    }
    return out;
}

// Calls use(samples) with the dense samples in `rows` and `norms`.
template <class Use>
void with_dense(nb::handle rows, nb::handle norms, Use use) {
    with_matrix<float, double>(rows, "rows", [&](const auto& x) {
        using T = std::remove_const_t<typename std::decay_t<decltype(x)>::Scalar>;
        if (x.shape(1) > 1 && x.stride(1) != 1) refuse("rows", "must be C-contiguous");
        if (x.shape(0) > 1 && x.stride(0) != static_cast<std::int64_t>(x.shape(1))) refuse("rows", "must be C-contiguous");
        const auto norms_ = vector<const T>(norms, "norms", x.shape(0));
        use(mercer::DenseSamples<T>{x.data(), static_cast<std::int64_t>(x.shape(0)), static_cast<std::int64_t>(x.shape(1)),
                                    norms_.data()});
        return 0;
    });
}

template <class T>
mercer::Panels<T> panels_of(nb::handle panels, nb::handle norms, std::int64_t n, std::int64_t d) {
    const std::int64_t width = mercer::tiles_of<T>(mercer::level()).columns;
    if (n < 0) refuse("n", "must not be negative");
    const auto data = vector<const T>(panels, "panels", static_cast<std::size_t>(up_to(n, width) * d));
    const auto norms_ = vector<const T>(norms, "panel_norms", static_cast<std::size_t>(up_to(n, width)));
    return {data.data(), norms_.data(), n, d};
}

nb::tuple tile_shape(bool single) {
    const mercer::Level& level = mercer::level();
    if (single) return nb::make_tuple(level.tiles_float.rows, level.tiles_float.columns, level.strips_float.width);
    return nb::make_tuple(level.tiles_double.rows, level.tiles_double.columns, level.strips_double.width);
}

void prepare(nb::handle X, nb::handle centre, double scale, nb::handle rows, nb::handle norms, int n_threads) {
    with_matrix<float, double>(X, "X", [&](const auto& x) {
        const std::size_t n = x.shape(0), d = x.shape(1);
        if ((d > 1 && x.stride(1) != 1) || (n > 1 && x.stride(0) != static_cast<std::int64_t>(d))) {
            refuse("X", "must be C-contiguous");
        }
        const auto centre_ = vector<const double>(centre, "centre", d);
        const auto fill = [&]<class T>(T*) {
            nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out;
            if (!nb::try_cast(rows, out, false)) return false;
            if (out.shape(0) != n || out.shape(1) != d) refuse("rows", "must have the shape of X");
            const auto norms_ = vector<T>(norms, "norms", n);
            Signals signals;
            const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
            const nb::gil_scoped_release unlocked;
            mercer::prepare_dense(x.data(), static_cast<std::int64_t>(n), static_cast<std::int64_t>(d), centre_.data(), scale,
                                  out.data(), norms_.data(), threads);
            return true;
        };
        if (!fill(static_cast<float*>(nullptr)) && !fill(static_cast<double*>(nullptr))) {
            refuse("rows", "must be a writable C-contiguous float32 or float64 matrix");
        }
        return 0;
    });
}

void pack(nb::handle rows, nb::handle norms, nb::handle which, nb::handle panels, nb::handle panel_norms, int n_threads) {
    with_dense(rows, norms, [&]<class T>(const mercer::DenseSamples<T>& samples) {
        const auto which_ = vector<const std::int64_t>(which, "which");
        const auto n = static_cast<std::int64_t>(which_.shape(0));
        check_range(which_.data(), which_.shape(0), samples.n, "which");
        panels_of<T>(panels, panel_norms, n, samples.d);
        const auto to = vector<T>(panels, "panels");
        const auto norms_to = vector<T>(panel_norms, "panel_norms");
        Signals signals;
        const mercer::Threads threads{n_threads, mercer::level(), signals.poll()};
        const nb::gil_scoped_release unlocked;
        mercer::pack(samples, which_.data(), n, to.data(), norms_to.data(), threads);
    });
}

void sum_dense(nb::handle panels, nb::handle panel_norms, nb::handle rows, nb::handle norms, nb::handle which,
               nb::handle coefficients, int ending, nb::handle numbers, nb::handle total, int n_threads) {
    Work work(ending, numbers, n_threads);
    with_dense(rows, norms, [&]<class T>(const mercer::DenseSamples<T>& samples) {
        const auto which_ = vector<const std::int64_t>(which, "which");
        check_range(which_.data(), which_.shape(0), samples.n, "which");
        const auto coefficients_ = vector<const double>(coefficients, "coefficients", which_.shape(0));
        const auto total_ = vector<double>(total, "total");
        const auto columns = panels_of<T>(panels, panel_norms, static_cast<std::int64_t>(total_.shape(0)), samples.d);
        const nb::gil_scoped_release unlocked;
        mercer::sum_block(columns, samples, which_.data(), static_cast<std::int64_t>(which_.shape(0)), coefficients_.data(),
                          work.ending, work.numbers, total_.data(), work.threads());
    });
}

void store_dense(nb::handle panels, nb::handle panel_norms, std::int64_t n, nb::handle rows, nb::handle norms,
                 nb::handle which, int ending, nb::handle numbers, nb::handle out, int n_threads) {
    Work work(ending, numbers, n_threads);
    with_dense(rows, norms, [&]<class T>(const mercer::DenseSamples<T>& samples) {
        const auto which_ = vector<const std::int64_t>(which, "which");
        check_range(which_.data(), which_.shape(0), samples.n, "which");
        const auto m = static_cast<std::int64_t>(which_.shape(0));
        const auto columns = panels_of<T>(panels, panel_norms, n, samples.d);
        const mercer::Tiles<T>& tiles = mercer::tiles_of<T>(work.level);
        const auto out_ = output<T>(out, up_to(m, tiles.rows), up_to(n, tiles.columns));
        const nb::gil_scoped_release unlocked;
        mercer::store_block(columns, samples, which_.data(), m, work.ending, work.numbers, out_.data(), out_.stride(0),
                            work.threads());
    });
}

// Calls use(samples) with the CSR samples, whose every index has been checked.
template <class Use>
void with_sparse(nb::handle values, nb::handle indices, nb::handle starts, nb::handle norms, std::int64_t d, Use use) {
    with_vector<float, double>(values, "values", "float32 or float64", [&](const auto& values_) {
        using T = std::remove_const_t<typename std::decay_t<decltype(values_)>::Scalar>;
        const std::size_t stored = values_.shape(0);
        const auto indices_ = vector<const std::int32_t>(indices, "indices", stored);
        const auto starts_ = vector<const std::int64_t>(starts, "starts");
        if (starts_.shape(0) == 0) refuse("starts", "must have one element more than there are samples");
        const auto n = static_cast<std::int64_t>(starts_.shape(0)) - 1;
        const auto norms_ = vector<const T>(norms, "norms", static_cast<std::size_t>(n));
        if (!mercer::check_indptr(starts_.data(), n, static_cast<std::int64_t>(stored))) {
            refuse("starts", "must not decrease and must stay between 0 and the number of stored elements");
        }
        for (std::size_t e = 0; e < stored; ++e) {
            if (indices_.data()[e] < 0 || indices_.data()[e] >= d) refuse("indices", "holds a feature outside of the range");
        }
        use(mercer::SparseSamples<T>{values_.data(), indices_.data(), starts_.data(), n, d, norms_.data()});
    });
}

void sum_sparse(nb::handle values, nb::handle indices, nb::handle starts, nb::handle norms, std::int64_t d,
                nb::handle columns, nb::handle which, nb::handle coefficients, int ending, nb::handle numbers,
                nb::handle total, int n_threads) {
    Work work(ending, numbers, n_threads);
    with_sparse(values, indices, starts, norms, d, [&]<class T>(const mercer::SparseSamples<T>& samples) {
        const auto columns_ = vector<const std::int64_t>(columns, "columns");
        const auto which_ = vector<const std::int64_t>(which, "which");
        check_range(columns_.data(), columns_.shape(0), samples.n, "columns");
        check_range(which_.data(), which_.shape(0), samples.n, "which");
        const auto coefficients_ = vector<const double>(coefficients, "coefficients", which_.shape(0));
        const auto total_ = vector<double>(total, "total", columns_.shape(0));
        const nb::gil_scoped_release unlocked;
        mercer::sum_block(samples, columns_.data(), static_cast<std::int64_t>(columns_.shape(0)), which_.data(),
                          static_cast<std::int64_t>(which_.shape(0)), coefficients_.data(), work.ending, work.numbers,
                          total_.data(), work.threads());
    });
}

void store_sparse(nb::handle values, nb::handle indices, nb::handle starts, nb::handle norms, std::int64_t d,
                  nb::handle columns, nb::handle which, int ending, nb::handle numbers, nb::handle out, int n_threads) {
    Work work(ending, numbers, n_threads);
    with_sparse(values, indices, starts, norms, d, [&]<class T>(const mercer::SparseSamples<T>& samples) {
        const auto columns_ = vector<const std::int64_t>(columns, "columns");
        const auto which_ = vector<const std::int64_t>(which, "which");
        check_range(columns_.data(), columns_.shape(0), samples.n, "columns");
        check_range(which_.data(), which_.shape(0), samples.n, "which");
        const auto n = static_cast<std::int64_t>(columns_.shape(0)), m = static_cast<std::int64_t>(which_.shape(0));
        const auto out_ = output<T>(out, n, up_to(m, mercer::strips_of<T>(work.level).width));
        const nb::gil_scoped_release unlocked;
        mercer::store_block(samples, columns_.data(), n, which_.data(), m, work.ending, work.numbers, out_.data(),
                            out_.stride(0), work.threads());
    });
}

std::vector<std::string> levels() {
    std::vector<std::string> names;
    for (const mercer::Level* level : mercer::levels()) names.emplace_back(level->name);
    return names;
}

void set_num_threads(int n) {
    if (n < 1) refuse("n", "must be at least 1, got " + std::to_string(n));
    mercer_set_num_threads(n);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The loops of mercer: arrays in, arrays out.";
    m.def("levels", &levels, "Instruction sets usable here, fastest last.");
    m.def(
        "level", [] { return std::string(mercer::level().name); },
        "The instruction set in use; the environment variable MERCER_SIMD forces one.");
    m.def("get_num_threads", &mercer_get_num_threads, "Threads a call may use when the user named no number.");
    m.def("set_num_threads", &set_num_threads, "n"_a, "Limit the threads of calls for which the user named no number.");
    // none(): the functions themselves say what is wrong with None.
    m.def("hash_rows", &hash_rows, "X"_a.none(), "n_threads"_a,
          "A 64-bit hash of each row's non-zero (column, value) pairs.");
    m.def("hash_rows_csr", &hash_rows_csr, "data"_a.none(), "indices"_a.none(), "indptr"_a.none(), "n_threads"_a,
          "The same for a CSR matrix with sorted, unique column indices.");
    m.def("smo", &smo, "K"_a.none(), "h"_a.none(), "beta"_a.none(), "lower"_a.none(), "upper"_a.none(), "d"_a.none(),
          "group"_a.none(), "tol"_a, "max_steps"_a, "max_seconds"_a,
          "Maximise p'b - 1/2 b'(K + diag d)b over the box, group sums kept; h = p - Kb - d b; beta is changed in place.");
    m.def("tile_shape", &tile_shape, "single"_a, "Rows and columns of a dense tile, and the width of a sparse strip.");
    m.def("prepare", &prepare, "X"_a.none(), "centre"_a.none(), "scale"_a, "rows"_a.none(), "norms"_a.none(), "n_threads"_a,
          "rows = (X - centre) * scale and norms = half their squared lengths.");
    m.def("pack", &pack, "rows"_a.none(), "norms"_a.none(), "which"_a.none(), "panels"_a.none(), "panel_norms"_a.none(),
          "n_threads"_a, "Lay out some samples as panels of columns.");
    m.def("sum_dense", &sum_dense, "panels"_a.none(), "panel_norms"_a.none(), "rows"_a.none(), "norms"_a.none(),
          "which"_a.none(), "coefficients"_a.none(), "ending"_a, "numbers"_a.none(), "total"_a.none(), "n_threads"_a,
          "total += K[columns, which] @ coefficients, without keeping K.");
    m.def("store_dense", &store_dense, "panels"_a.none(), "panel_norms"_a.none(), "n"_a, "rows"_a.none(), "norms"_a.none(),
          "which"_a.none(), "ending"_a, "numbers"_a.none(), "out"_a.none(), "n_threads"_a, "out = K[which, columns].");
    m.def("sum_sparse", &sum_sparse, "values"_a.none(), "indices"_a.none(), "starts"_a.none(), "norms"_a.none(), "d"_a,
          "columns"_a.none(), "which"_a.none(), "coefficients"_a.none(), "ending"_a, "numbers"_a.none(), "total"_a.none(),
          "n_threads"_a, "total += K[columns, which] @ coefficients for sparse samples.");
    m.def("store_sparse", &store_sparse, "values"_a.none(), "indices"_a.none(), "starts"_a.none(), "norms"_a.none(), "d"_a,
          "columns"_a.none(), "which"_a.none(), "ending"_a, "numbers"_a.none(), "out"_a.none(), "n_threads"_a,
          "out = K[columns, which] for sparse samples.");
}
