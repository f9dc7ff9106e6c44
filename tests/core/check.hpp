// The smallest test framework that will do: a failed CHECK prints itself, is counted, and the test goes on.
#pragma once

#include <cstdio>

inline int failures = 0;

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            std::fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #condition); \
            ++failures;                                                                 \
        }                                                                               \
    } while (false)

void test_array_checks();
void test_findings();
void test_merging();
void test_smo();
void test_pool();
void test_row_hash();
void test_row_passes();
void test_dispatch();
void test_blocks();
void test_working_set();
void test_homotopy();
void test_joint();
void test_linear();
void test_doubled();
void test_shapley();
