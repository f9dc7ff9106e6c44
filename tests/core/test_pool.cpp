// The pool: every chunk once; errors and interrupts reach the caller; callers and forked children live in peace.
#include "threads/pool.hpp"

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace {

using namespace std::chrono_literals;

void sum_with(int n_threads, std::int64_t chunks) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(chunks));
    mercer::Poll poll;
    mercer::parallel_for(chunks, n_threads, [&](std::int64_t c) { ++seen[static_cast<std::size_t>(c)]; }, poll);
    for (const auto& count : seen) CHECK(count == 1);
}

void every_chunk_once() {
    for (const int n_threads : {0, 1, 2, 4, 9}) {
        for (const std::int64_t chunks : {0, 1, 2, 3, 1000}) sum_with(n_threads, chunks);
    }
    CHECK(mercer::pool_helpers() == 8);
}

void many_callers() {
    std::vector<std::thread> callers;
    for (int t = 0; t < 8; ++t) {
        callers.emplace_back([] {
            for (int round = 0; round < 50; ++round) sum_with(4, 64);
        });
    }
    for (auto& caller : callers) caller.join();
    CHECK(mercer::pool_helpers() == 8);
}

void nested() {
    std::atomic<int> inner{0};
    mercer::Poll poll;
    mercer::parallel_for(
        8, 4, [&](std::int64_t) { mercer::parallel_for(16, 4, [&](std::int64_t) { ++inner; }, poll); }, poll);
    CHECK(inner == 128);
}

void errors_reach_the_caller() {
    for (const int n_threads : {1, 4}) {
        std::atomic<int> ran{0};
        std::string what;
        mercer::Poll poll;
        try {
            const auto chunk = [&](std::int64_t c) {
                if (c == 5) throw std::runtime_error("chunk 5");
                ++ran;
                std::this_thread::sleep_for(100us);
            };
            mercer::parallel_for(10000, n_threads, chunk, poll);
        } catch (const std::runtime_error& error) {
            what = error.what();
        }
        CHECK(what == "chunk 5");
        CHECK(ran < 1000);
    }
}

struct Interrupted {};

void interrupts_reach_the_caller() {
    const auto caller = std::this_thread::get_id();
    for (const int n_threads : {1, 4}) {
        std::thread::id asked;
        struct Context {
            std::thread::id* asked;
            int calls = 0;
        } context{&asked};
        mercer::Poll poll(
            [](void* c) {
                auto* self = static_cast<Context*>(c);
                *self->asked = std::this_thread::get_id();
                if (++self->calls == 2) throw Interrupted{};
            },
            &context);
        const auto start = std::chrono::steady_clock::now();
        bool interrupted = false;
        try {
            mercer::parallel_for(1000000, n_threads, [](std::int64_t) { std::this_thread::sleep_for(1ms); }, poll);
        } catch (const Interrupted&) {
            interrupted = true;
        }
        CHECK(interrupted);
        CHECK(asked == caller);
        CHECK(poll.stopped() == (n_threads > 1));
        CHECK(std::chrono::steady_clock::now() - start < 2s);
    }
}

// The caller has run out of chunks and waits for a helper's long one, which looks at the flag.
void interrupts_while_waiting() {
    mercer::Poll poll([](void*) { throw Interrupted{}; }, nullptr);
    const auto caller = std::this_thread::get_id();
    std::atomic<bool> helper_started{false};
    bool interrupted = false;
    const auto chunk = [&](std::int64_t) {
        if (std::this_thread::get_id() == caller) {
            for (int i = 0; i < 20 && !helper_started; ++i) std::this_thread::sleep_for(1ms);
        } else {
            helper_started = true;
            while (!poll.stopped()) std::this_thread::sleep_for(1ms);
        }
    };
    try {
        mercer::parallel_for(2, 2, chunk, poll);
    } catch (const Interrupted&) {
        interrupted = true;
    }
    CHECK(interrupted || !helper_started);
}

void stop_flag_skips_the_rest() {
    std::atomic<int> ran{0};
    mercer::Poll poll;
    poll.stop();
    mercer::parallel_for(1000, 4, [&](std::int64_t) { ++ran; }, poll);
    CHECK(ran == 0);
    bool abandoned = false;
    try {
        poll.check();
    } catch (const mercer::Abandoned&) {
        abandoned = true;
    }
    CHECK(abandoned);
}

#if (defined(__unix__) || defined(__APPLE__)) && !defined(__SANITIZE_THREAD__)  // TSan forbids threads after fork
void children_start_anew() {
    sum_with(4, 100);
    // Busy callers, so that the fork may catch the pool's mutex locked.
    std::atomic<bool> enough{false};
    std::vector<std::thread> busy;
    for (int t = 0; t < 2; ++t) {
        busy.emplace_back([&] {
            while (!enough) sum_with(3, 10);
        });
    }
    for (int round = 0; round < 20; ++round) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(10);  // a child that hangs dies of it
            const bool fresh = mercer::pool_helpers() == 0;
            sum_with(4, 100);
            _exit(fresh && failures == 0 && mercer::pool_helpers() == 3 ? 0 : 1);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    enough = true;
    for (auto& caller : busy) caller.join();
    sum_with(4, 100);
}
#else
void children_start_anew() {}
#endif

}  // namespace

void test_pool() {
    every_chunk_once();
    many_callers();
    nested();
    errors_reach_the_caller();
    interrupts_reach_the_caller();
    interrupts_while_waiting();
    stop_flag_skips_the_rest();
    children_start_anew();
}
