// What a parallel call is given: a number of threads, the loops for this processor, and a poll that may end it.
#pragma once

#include "threads/interrupt.hpp"

namespace mercer {

struct Level;

struct Threads {
    int count;
    const Level& level;
    Poll& poll;
};

}  // namespace mercer
