// What every file of bindings shares: arguments checked for what memory safety needs, results handed over, and Python's
// signals as a poll. Only this folder knows Python, and it holds no loops: those are in the core, where C++ tests them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "algebra/array_checks.hpp"
#include "bind/stop_flag.hpp"
#include "threads/interrupt.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

// The type of an array's elements.
template <class Array>
using Element = std::remove_const_t<typename std::decay_t<Array>::Scalar>;

[[noreturn]] inline void refuse(const char* name, const std::string& why) {
    throw nb::value_error((std::string(name) + " " + why).c_str());
}

template <class T>
const char* type_name() {
    if constexpr (std::is_same_v<T, double>) return "float64";
    if constexpr (std::is_same_v<T, float>) return "float32";
    if constexpr (std::is_same_v<T, std::int32_t>) return "int32";
    return "int64";
}

// An argument that is to be an array: what is done with it says what is wrong with it, in words. Stubs have its type.
struct AnyArray : nb::handle {
    static constexpr auto Name = nb::detail::const_name("numpy.typing.NDArray[typing.Any]");
    using nb::handle::handle;
    AnyArray(nb::handle given) : nb::handle(given) {}
    static bool check_(nb::handle) { return true; }
};

// Return types: an array that owns its memory, an array whose element type is known at run time only, several values.
template <class T>
using OwnArray = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
using Doubles = OwnArray<double>;
using Indices = OwnArray<std::int64_t>;
using ArrayOfAnyType = nb::typed<nb::object, AnyArray>;
template <class... Types>
using TupleOf = nb::typed<nb::tuple, Types...>;

// Loads through a pointer that is not a multiple of the element size are undefined.
template <class Array>
void check_alignment(const Array& array, const char* name) {
    const auto address = reinterpret_cast<std::uintptr_t>(array.data());
    if (address % alignof(Element<Array>) != 0) refuse(name, "is not aligned; copy it first");
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
// worker thread does not queue for the lock again and again. Threads that work for one fit watch its flag instead, also
// before the call: a loop of short calls ends as well.
class Signals {
public:
    Signals() : poll_(&Signals::ask, this) { check_stop(); }
    mercer::Poll& poll() { return poll_; }
    static void stop_asking() { interpreter_ends_ = true; }

private:
    enum class Thread { unknown, main, other } thread_ = Thread::unknown;
    mercer::Poll poll_;
    static inline std::atomic<bool> interpreter_ends_{false};

    static void ask(void* self) {
        check_stop();
        if (StopFlag::watching()) return;
        auto& thread = static_cast<Signals*>(self)->thread_;
        if (thread == Thread::other || interpreter_ends_) return;
        const nb::gil_scoped_acquire lock;
        if (thread == Thread::unknown) {
            const nb::module_ threading = nb::module_::import_("threading");
            const bool main = threading.attr("get_ident")().equal(threading.attr("main_thread")().attr("ident"));
            thread = main ? Thread::main : Thread::other;
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
};

inline void check_range(const std::int64_t* index, std::size_t count, std::int64_t n, const char* name) {
    if (!mercer::all_indices(index, count, n)) refuse(name, "holds an index that is out of range");
}

// Where the rows of CSR arrays begin, and the end, whatever the type of `indptr`.
inline std::vector<std::int64_t> row_starts(nb::handle indptr, std::size_t stored) {
    std::vector<std::int64_t> starts;
    with_vector<std::int32_t, std::int64_t>(indptr, "indptr", "int32 or int64", [&](const auto& given) {
        starts.assign(given.data(), given.data() + given.shape(0));
    });
    if (starts.empty()) refuse("indptr", "must have one element more than there are rows");
    if (!mercer::is_indptr(starts.data(), static_cast<std::int64_t>(starts.size()) - 1,
                           static_cast<std::int64_t>(stored))) {
        refuse("indptr", "must not decrease and must stay between 0 and the number of stored elements");
    }
    return starts;
}

// Calls use(data, indices, starts, rows) for CSR arrays of any of the usual types, whose columns are not checked.
template <class Use>
void with_csr(nb::handle data, nb::handle indices, nb::handle indptr, Use use) {
    with_vector<float, double>(data, "data", "float32 or float64", [&](const auto& data_) {
        const std::vector<std::int64_t> starts = row_starts(indptr, data_.shape(0));
        with_vector<std::int32_t, std::int64_t>(indices, "indices", "int32 or int64", [&](const auto& indices_) {
            if (indices_.shape(0) != data_.shape(0)) refuse("indices", "must have as many elements as data");
            use(data_, indices_, starts.data(), static_cast<std::int64_t>(starts.size()) - 1);
        });
    });
}

// An array that takes over a vector.
template <class T>
OwnArray<T> as_array(std::vector<T> values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* data = kept->data();
    const std::size_t n = kept->size();
    const nb::capsule owner(kept.release(), [](void* v) noexcept { delete static_cast<std::vector<T>*>(v); });
    return OwnArray<T>(data, {n}, owner);
}

// A Python list of what `item` makes of each value.
template <class T, class Item>
auto as_list(const std::vector<T>& values, Item item) {
    using Type = std::decay_t<std::invoke_result_t<Item, const T&>>;
    nb::typed<nb::list, Type> out;
    for (const T& value : values) out.append(item(value));
    return out;
}

inline void check_threads(int n_threads) {
    if (n_threads < 1) refuse("n_threads", "must be at least 1, got " + std::to_string(n_threads));
}
