// What a parallel call is given: how many threads it may use, the loops of this processor, and a poll to be abandoned by.
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
