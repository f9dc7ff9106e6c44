// Things that are expensive to make and serve one chunk of work at a time. As many are made as are in use at once.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace mercer {

template <class Thing>
class Spares {
public:
    // One that was given back, or what make() returns.
    template <class Make>
    std::unique_ptr<Thing> take(Make make) {
        {
            const std::lock_guard lock(mutex_);
            if (!spare_.empty()) {
                auto thing = std::move(spare_.back());
                spare_.pop_back();
                return thing;
            }
        }
        return make();
    }

    void give_back(std::unique_ptr<Thing> thing) {
        const std::lock_guard lock(mutex_);
        spare_.push_back(std::move(thing));
    }

private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Thing>> spare_;
};

}  // namespace mercer
