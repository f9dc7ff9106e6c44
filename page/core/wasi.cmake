# Clang and the C++ library of Debian's packages clang-19, lld-19, wasi-libc, libc++-19-dev-wasm32 and
# libclang-rt-19-dev-wasm32; another clang is chosen with -DMERCER_CLANG=.
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(MERCER_CLANG clang++-19 CACHE STRING "The compiler")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MERCER_CLANG)
set(CMAKE_CXX_COMPILER ${MERCER_CLANG})
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
