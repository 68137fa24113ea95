# Warnings and sanitizers for everything in this project, and functions: hmc_part() for a folder
# of src/, hmc_vendor_part() for one that needs a vendor's headers, hmc_test() for a test.

add_library(hmc_flags INTERFACE)
# Clang warns of names that only meet because many files are compiled as one.
target_compile_options(hmc_flags INTERFACE -Wall -Wextra $<$<CXX_COMPILER_ID:GNU>:-Wshadow>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Wno-missing-field-initializers)
if(HMC_SANITIZE)
  target_compile_options(hmc_flags INTERFACE -fsanitize=${HMC_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(hmc_flags INTERFACE -fsanitize=${HMC_SANITIZE})
  # Clang's check of functions does not fit: vendors' are called by prototypes of our own.
  target_compile_options(hmc_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
endif()

# What makes an error that is left in the code harder to use: checked sizes in libc's functions, canaries,
# no jump into the middle of a function, and tables of addresses that are read-only once they are filled.
# Distributions' compilers do some of it by themselves. Sanitizers have checks of their own.
option(HMC_HARDENING "Build with the compiler's and linker's protections" ON)
if(HMC_HARDENING AND NOT HMC_SANITIZE)
  include(CheckCXXCompilerFlag)
  foreach(flag stack-protector-strong stack-clash-protection cf-protection=full)
    string(MAKE_C_IDENTIFIER "HMC_HAS_${flag}" has)
    check_cxx_compiler_flag(-f${flag} ${has})
    if(${has})
      target_compile_options(hmc_flags INTERFACE -f${flag})
    endif()
  endforeach()
  # Needs an optimising compiler. GCC knows the builtin from 12 on, and without it glibc warns of a 3.
  include(CheckCXXSourceCompiles)
  check_cxx_source_compiles("
    #if !__has_builtin(__builtin_dynamic_object_size)
    #error
    #endif
    int main() {}" HMC_HAS_FORTIFY_3)
  set(level $<IF:$<BOOL:${HMC_HAS_FORTIFY_3}>,3,2>)
  set(optimised $<NOT:$<CONFIG:Debug>>)
  if(CMAKE_CXX_FLAGS_DEBUG MATCHES "-O[1-9gs]")
    set(optimised 1)
  endif()
  target_compile_options(hmc_flags INTERFACE
    $<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=${level}>)
  target_link_options(hmc_flags INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
endif()

# With Clang's address sanitizer the fuzz targets are libFuzzer's, which needs to see which parts of the
# library's code were reached.
set(HMC_LIBFUZZER FALSE)
if(HMC_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(HMC_LIBFUZZER TRUE)
endif()

# As GCC says it, and later versions of Clang: tests do less, and expect memory to be kept.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  foreach(sanitizer address thread)
    if(HMC_SANITIZE MATCHES ${sanitizer})
      string(TOUPPER ${sanitizer} name)
      target_compile_definitions(hmc_flags INTERFACE __SANITIZE_${name}__=1)
    endif()
  endforeach()
endif()

# Collecting its garbage is up to a tenth of what GCC does. Without it the largest batches take 0.9 GiB
# instead of 0.7.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(hmc_flags INTERFACE --param=ggc-min-heapsize=524288)
endif()

# Compiles many files as one, which takes a third of the time. Turn it off to work on a few files.
option(HMC_UNITY "Compile up to 16 files of a part in one go" ON)
function(hmc_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HMC_UNITY} UNITY_BUILD_BATCH_SIZE 16)
endfunction()

# What nearly every file includes, compiled once for all libraries of the project.
file(WRITE ${PROJECT_BINARY_DIR}/headers.cc "")
add_library(hmc_headers OBJECT ${PROJECT_BINARY_DIR}/headers.cc)
target_link_libraries(hmc_headers PRIVATE hmc_flags Threads::Threads fmt::fmt)
target_precompile_headers(hmc_headers PRIVATE
  <fmt/format.h>
  <algorithm> <array> <atomic> <charconv> <chrono> <condition_variable> <deque> <filesystem> <fstream> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <string> <thread> <unordered_map> <vector>)
function(hmc_precompiled target)
  target_precompile_headers(${target} REUSE_FROM hmc_headers)
  # So that ccache can look through them.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

# For code that does not touch the bytes of a transfer: a quarter less to compile, and small functions
# are inlined all the same.
function(hmc_cold target)
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:Release>:-O1> $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-finline-small-functions>)
endfunction()

# A part that is missing in a library shows when it is linked, not in the user's program. Not with Clang's
# sanitizers, which are in the program alone.
function(hmc_complete library)
  if(NOT HMC_SANITIZE OR NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_link_options(${library} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

# hmc_part(name SOURCES ... DEPS ...)
# One folder of src/ as an object library that libhmc is made of (hmc_NAME_objects), and as a static
# library with its dependencies that tests link (hmc_NAME).
function(hmc_part name)
  cmake_parse_arguments(PART "" "" "SOURCES;DEPS" ${ARGN})
  add_library(hmc_${name}_objects OBJECT ${PART_SOURCES})
  target_include_directories(hmc_${name}_objects PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(hmc_${name}_objects PRIVATE hmc_flags Threads::Threads fmt::fmt)
  target_compile_definitions(hmc_${name}_objects PRIVATE HMC_BUILDING)
  if(HMC_LIBFUZZER)
    target_compile_options(hmc_${name}_objects PRIVATE -fsanitize-coverage=inline-8bit-counters,pc-table)
  endif()
  hmc_unity(hmc_${name}_objects)
  hmc_precompiled(hmc_${name}_objects)
  add_library(hmc_${name} STATIC EXCLUDE_FROM_ALL $<TARGET_OBJECTS:hmc_${name}_objects>)
  target_include_directories(hmc_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(hmc_${name} PUBLIC Threads::Threads fmt::fmt ${CMAKE_DL_LIBS})
  foreach(dep ${PART_DEPS})
    target_link_libraries(hmc_${name} PUBLIC hmc_${dep})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY HMC_PARTS ${name})
endfunction()

# hmc_vendor_part(name INCLUDE dir SOURCES ... DEPS ...)
# A part that needs a vendor's headers. Without them it is not_built.cc alone.
function(hmc_vendor_part name)
  cmake_parse_arguments(PART "" "INCLUDE" "SOURCES;DEPS" ${ARGN})
  if(PART_INCLUDE)
    hmc_part(${name} SOURCES ${PART_SOURCES} DEPS ${PART_DEPS})
    target_include_directories(hmc_${name}_objects SYSTEM PRIVATE ${PART_INCLUDE})
  else()
    hmc_part(${name} SOURCES not_built.cc DEPS ${PART_DEPS})
  endif()
endfunction()

# hmc_test(name SOURCES ... DEPS parts... [LIBS targets...] [LABELS ...] [TIMEOUT seconds] [PROGRAM program])
# A program NAME and its ctest entry. With PROGRAM the sources join that program, which compiles them in
# one go: a fifth of the time of as many programs. The entry stays, runs the cases of its own sources
# alone, and is a process with its own environment.
function(hmc_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT;PROGRAM" "SOURCES;DEPS;LIBS;LABELS" ${ARGN})
  if(NOT TEST_PROGRAM OR TEST_PROGRAM STREQUAL name)
    hmc_test_program(${name} GTest::gtest_main)
    hmc_test_entry(${name} ${name})
    set(TEST_PROGRAM ${name})
  else()
    if(NOT TARGET ${TEST_PROGRAM})
      hmc_test_program(${TEST_PROGRAM} hmc_test_main)
      hmc_unity(${TEST_PROGRAM})
    endif()
    list(TRANSFORM TEST_SOURCES PREPEND "--file=" OUTPUT_VARIABLE files)
    hmc_test_entry(${name} ${TEST_PROGRAM} ${files})
  endif()
  target_sources(${TEST_PROGRAM} PRIVATE ${TEST_SOURCES})
  target_link_libraries(${TEST_PROGRAM} PRIVATE ${TEST_LIBS})
  foreach(dep ${TEST_DEPS})
    target_link_libraries(${TEST_PROGRAM} PRIVATE hmc_${dep})
  endforeach()
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} LABELS "${TEST_LABELS}")
endfunction()

# hmc_slow(tests...): what takes more than ten seconds on two idle cores. `make quick` leaves it out, and ctest
# begins with it, so that it does not end with one of them alone.
function(hmc_slow)
  foreach(test ${ARGN})
    set_property(TEST ${test} APPEND PROPERTY LABELS slow)
    set_property(TEST ${test} PROPERTY COST 50)
  endforeach()
endfunction()

function(hmc_test_program name main)
  add_executable(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE hmc_flags hmc_test_flags ${main})
  target_precompile_headers(${name} REUSE_FROM hmc_test_headers)
  target_compile_options(${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

# hmc_test_entry(name program arguments...)
# A ctest entry of a GoogleTest program. Its report has the entry's name, because several may share a program.
function(hmc_test_entry name program)
  add_test(NAME ${name} COMMAND ${program} ${ARGN} --gtest_output=xml:${PROJECT_BINARY_DIR}/test-reports/${name}.xml)
endfunction()
