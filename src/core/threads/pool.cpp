// A job is a counter of chunks; helpers are detached threads that sleep while no job is open.
#include "threads/pool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace mercer {
namespace {

// Shared by the caller and its helpers. run, context and poll live on the caller's stack; a helper that wakes too late
// finds no chunk to claim and never touches them.
struct Job {
    Job(std::int64_t chunks, int helpers, void (*run)(void*, std::int64_t), void* context, Poll& poll)
        : total(chunks), free_seats(helpers), run(run), context(context), poll(poll) {}

    const std::int64_t total;
    int free_seats;  // guarded by the pool's mutex
    void (*const run)(void*, std::int64_t);
    void* const context;
    Poll& poll;

    std::atomic<std::int64_t> next{0};
    std::atomic<std::int64_t> done{0};
    std::mutex mutex;  // guards failure, and lends itself to finished
    std::condition_variable finished;
    std::exception_ptr failure;

    void fail(std::exception_ptr error) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::move(error);
        poll.stop();
    }

    // Every chunk is claimed and counted exactly once, whether it is run or skipped: the job ends when done == total.
    template <class Between>
    void work(Between between) {
        for (;;) {
            const std::int64_t c = next.fetch_add(1, std::memory_order_relaxed);
            if (c >= total) return;
            if (!poll.stopped()) {
                try {
                    run(context, c);
                    between();
                } catch (...) {
                    fail(std::current_exception());
                }
            }
            if (done.fetch_add(1, std::memory_order_acq_rel) + 1 == total) {
                const std::lock_guard lock(mutex);
                finished.notify_all();
            }
        }
    }

    bool complete() const { return done.load(std::memory_order_acquire) == total; }
};

class Pool {
public:
    void open(const std::shared_ptr<Job>& job) {
        const std::lock_guard lock(mutex_);
        while (helpers_ < job->free_seats && start_helper()) {
        }
        jobs_.push_back(job);
        if (job->free_seats == 1) {
            wake_.notify_one();
        } else {
            wake_.notify_all();
        }
    }

    void close(const std::shared_ptr<Job>& job) {
        const std::lock_guard lock(mutex_);
        jobs_.erase(std::find(jobs_.begin(), jobs_.end(), job));
    }

    int helpers() {
        const std::lock_guard lock(mutex_);
        return helpers_;
    }

private:
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::shared_ptr<Job>> jobs_;
    int helpers_ = 0;

    // Detached, and the pool is never destroyed: nothing has to be joined when the interpreter exits.
    bool start_helper() {
        try {
            std::thread([this] { serve(); }).detach();
        } catch (const std::system_error&) {
            return false;  // the machine is out of threads: the caller does the work alone
        }
        ++helpers_;
        return true;
    }

    std::shared_ptr<Job> take_seat() {
        for (const auto& job : jobs_) {
            if (job->free_seats > 0 && job->next.load(std::memory_order_relaxed) < job->total) {
                --job->free_seats;
                return job;
            }
        }
        return nullptr;
    }

    [[noreturn]] void serve() {
        for (;;) {
            std::shared_ptr<Job> job;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return (job = take_seat()) != nullptr; });
            }
            job->work([] {});
        }
    }
};

std::atomic<Pool*> the_pool{nullptr};

// A forked child has none of its parent's helpers and may have inherited a locked mutex, so it leaks the pool.
void forget_pool() { the_pool.store(nullptr, std::memory_order_relaxed); }

void forget_pool_after_fork() {
#if defined(__unix__) || defined(__APPLE__)
    static std::atomic<bool> registered{false};  // inherited by children, like the handler itself
    if (!registered.exchange(true)) pthread_atfork(nullptr, nullptr, forget_pool);
#else
    (void)forget_pool;
#endif
}

Pool& pool() {
    Pool* current = the_pool.load(std::memory_order_acquire);
    if (current != nullptr) return *current;
    forget_pool_after_fork();
    auto fresh = std::make_unique<Pool>();
    if (the_pool.compare_exchange_strong(current, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
    return *current;
}

void wait_for_helpers(Job& job) {
    // Helpers are usually in their last chunk: yielding a few times avoids a sleep and a wake-up.
    for (int spin = 0; spin < 64; ++spin) {
        if (job.complete()) return;
        std::this_thread::yield();
    }
    while (!job.complete()) {
        {
            std::unique_lock lock(job.mutex);
            if (job.finished.wait_for(lock, Poll::kInterval, [&] { return job.complete(); })) return;
        }
        try {
            job.poll.check();
        } catch (...) {
            job.fail(std::current_exception());
        }
    }
}

}  // namespace

int pool_helpers() {
    Pool* current = the_pool.load(std::memory_order_acquire);
    return current == nullptr ? 0 : current->helpers();
}

void detail::parallel_for(std::int64_t chunks, int n_threads, void (*run)(void*, std::int64_t), void* context,
                          Poll& poll) {
    const auto helpers = static_cast<int>(std::min<std::int64_t>(n_threads - 1, chunks - 1));
    if (helpers < 1) {
        for (std::int64_t c = 0; c < chunks && !poll.stopped(); ++c) {
            run(context, c);
            poll.check();
        }
        return;
    }
    const auto job = std::make_shared<Job>(chunks, helpers, run, context, poll);
    Pool& shared = pool();
    shared.open(job);
    job->work([&poll] { poll.check(); });
    shared.close(job);
    wait_for_helpers(*job);
    if (job->failure) std::rethrow_exception(job->failure);
}

}  // namespace mercer
