// Loops over the rows of a linear machine's data, dense or CSR: products with a weight vector, their transpose, weighted
// sums of outer products, and dual coordinate descent on
//
//     maximise  p'b - sum of epsilon_i |b_i| - 1/2 b'(XX' + B^2 11' + diag d)b   subject to  lower <= b <= upper,
//
// where B is the value of a feature that every row has (the bias as a regularised weight; 0: none).
#pragma once

#include <cstdint>

#include "simd/level.hpp"
#include "threads/interrupt.hpp"

namespace mercer {

class PackedCsr;

template <class T>
struct LinearDense {
    const T* data;
    std::int64_t n, d;
};

// Any rows of CSR arrays. Column indices are inside [0, d) and rows inside the data: the bindings check that.
template <class T, class Index>
struct LinearCsr {
    const T* data;
    const Index* indices;
    const Index *starts, *ends;
    std::int64_t stored;  // entries of all these rows
    std::int64_t n, d;
};

struct LinearThreads {
    int n_threads;
    const Level& level;
    Poll& poll;
};

// out_i = x_i'w + shift.
template <class Rows>
void linear_product(const Rows& rows, const double* w, double shift, double* out, const LinearThreads& threads);

// out = sum of c_i x_i. Partial sums are over ranges that depend on the data's size only, and so does the result.
template <class Rows>
void linear_transposed(const Rows& rows, const double* c, double* out, const LinearThreads& threads);

// The lower triangle of out, (d + 1) x (d + 1), becomes the sum over the m rows `which` of c z z' with z = (x, 1).
template <class Rows>
void linear_outer(const Rows& rows, const std::int64_t* which, const double* c, std::int64_t m, double* out,
                  const LinearThreads& threads);

// The squared length of every row.
template <class Rows>
void linear_lengths(const Rows& rows, double* out, const LinearThreads& threads);

// What Newton's method asks of the samples at outputs f. Their response is t = the point of the box nearest to
// shrunk(q - f, epsilon) * inverse, where q = p + mu centre and inverse = 1 / (d + mu) hold the proximal term.
struct Respondents {
    std::int64_t n;
    const double *q, *inverse, *lower, *upper, *epsilon;
};

struct Response {
    double total;   // sum of t
    double losses;  // of the true problem, with p and d
    double shares;  // of the true problem's duality gap
};

Response linear_response(const Respondents& samples, const double* p, const double* d, const double* f, double* t,
                         int n_threads, Poll& poll);

// The sum of t move at f + step move.
double linear_along(const Respondents& samples, const double* f, const double* move, double step, int n_threads,
                    Poll& poll);

struct DcdProblem {
    const double* p;
    const double* lower;
    const double* upper;
    const double* d;
    const double* epsilon;
    const double* lengths;  // squared lengths of the rows, without the bias feature
    double bias;            // the bias feature's value B; 0: none; infinite: b is free, which only packed rows know
    double* beta;           // the start, and where it ends
    double* w;              // X'beta, kept up to date
    double* b;              // where the bias might be, and where it ends
    double value;           // of the dual at the start, without what the bias takes
    bool hold;              // whether b may be held between visits (packed_descent.hpp says why)
};

// Both must hold over all rows at the end; the joint descent asks for them on its last pass only, and leaves the rest to its
// caller's certificate.
struct DcdStop {
    double tol;  // largest gradient that may still be followed
    double gap;  // the duality gap, the sum of the rows' shares of it, over the dual value
    std::int64_t max_epochs;
    double max_seconds;
    bool shrinking;
};

struct DcdResult {
    std::int64_t epochs;  // in passes over all rows, rounded up
    double violation;     // over the rows of the last pass
    double gap;           // the sum of shares itself
    const char* reason;   // converged, max_epochs or max_seconds; unsettled: a free bias that cannot be found this way
};

// Hsieh et al. 2008, with shrinking and a fresh random order for every pass from `seed`. Sparse rows are packed into `kept`,
// which belongs to these rows, where the problem is one of classification.
template <class Rows>
DcdResult linear_dcd(const Rows& rows, PackedCsr& kept, const DcdProblem& problem, const DcdStop& stop,
                     std::uint64_t* seed, const LinearThreads& threads);

struct JointDcdProblem {
    const std::int64_t* y;
    const double* C;
    const double* lengths;  // squared lengths of the rows, without the bias feature
    double bias;
    std::int64_t classes;
    double* beta;    // n x classes: the start, and where it ends
    double* w;       // d x classes: X'beta, kept up to date
    double* w_bias;  // per class, B times the sum of beta
};

// The same for the joint machine of Crammer and Singer (problems/multiclass.py states it): all variables of a sample at a time,
// exactly (Keerthi et al. 2008). No shrinking.
template <class Rows>
DcdResult linear_joint_dcd(const Rows& rows, const JointDcdProblem& problem, const DcdStop& stop, std::uint64_t* seed,
                           const Level& level, Poll& poll);

}  // namespace mercer
