# An object compiled for one instruction set may define its table and nothing else that the linker can see: a weak
# symbol (an instantiated template, an inline function) could be chosen for code that runs on every processor.
#   cmake -DNM=nm -DLEVEL=avx2 -DOBJECT=level.cpp.o -P check_symbols.cmake
execute_process(COMMAND ${NM} -C --defined-only --extern-only ${OBJECT}
                OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
string(STRIP "${symbols}" symbols)
if(NOT symbols MATCHES "^[0-9a-fA-F]* [DRS] mercer::level_${LEVEL}$")
  message(FATAL_ERROR "the object of level ${LEVEL} defines more than its table:\n${symbols}")
endif()
