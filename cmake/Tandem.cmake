# The helpers that every folder uses to declare its libraries, tests, benches and fuzz targets.
include_guard(GLOBAL)

find_program(TANDEM_CCACHE ccache)
if(TANDEM_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${TANDEM_CCACHE}")
endif()
find_program(TANDEM_MOLD mold)

add_library(tandem_options INTERFACE)
target_include_directories(tandem_options INTERFACE "${CMAKE_SOURCE_DIR}/src")
set(tandem_host_warnings
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast
  -Wundef -Wno-missing-field-initializers -Werror -fno-fast-math -ffp-contract=off)
target_compile_options(tandem_options INTERFACE "$<$<COMPILE_LANGUAGE:C,CXX>:${tandem_host_warnings}>")
target_compile_definitions(tandem_options INTERFACE
  $<$<NOT:$<CONFIG:Release>>:_GLIBCXX_ASSERTIONS>)
if(TANDEM_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_link_options(tandem_options INTERFACE -fuse-ld=mold)
endif()
if(TANDEM_SANITIZE)
  target_compile_options(tandem_options INTERFACE
    -fsanitize=${TANDEM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented library headers (boost::optional) make g++ 12 see uninitialised reads that are none.
    target_compile_options(tandem_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(tandem_options INTERFACE -fsanitize=${TANDEM_SANITIZE})
  if(TANDEM_SANITIZE STREQUAL "thread")  # it cannot follow Asio's fences; its mutexes order the same
    target_compile_definitions(tandem_options INTERFACE BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()
if(TANDEM_FUZZ)  # coverage counters in every library, or libFuzzer is blind
  target_compile_options(tandem_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# tandem_library(NAME SRCS a.cc ... DEPS other ...): one static library per folder under src/.
function(tandem_library name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  if(ARG_SRCS)
    add_library(tandem_${name} STATIC ${ARG_SRCS})
    set(scope PUBLIC)
  else()
    add_library(tandem_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(tandem::${name} ALIAS tandem_${name})
  target_link_libraries(tandem_${name} ${scope} tandem_options)
  tandem_link(tandem_${name} ${scope} ${ARG_DEPS})
endfunction()

# Links short names of our own libraries (base, json, ...) or full target names (fmt::fmt).
function(tandem_link target scope)
  foreach(dep IN LISTS ARGN)
    if(dep MATCHES "::" OR dep MATCHES "^-" OR dep MATCHES "^/")
      target_link_libraries(${target} ${scope} ${dep})
    else()
      target_link_libraries(${target} ${scope} tandem_${dep})
    endif()
  endforeach()
endfunction()

# All tests with the label unit: what the sanitizer runs build.
add_custom_target(unit_tests)

# tandem_test(NAME SRCS ... DEPS ... [LABEL unit] [TIMEOUT seconds] [FILTER tests]): a GoogleTest binary known to
# ctest, which runs the tests that the filter names, or all.
function(tandem_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;FILTER" "SRCS;DEPS" ${ARGN})
  if(NOT ARG_FILTER)
    set(ARG_FILTER "*")
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE tandem_options GTest::gtest_main GTest::gmock)
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE TANDEM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  tandem_link(${name} PRIVATE ${ARG_DEPS})
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 "--gtest_filter=${ARG_FILTER}"
    WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABEL STREQUAL "unit")
    add_dependencies(unit_tests ${name})
  endif()
endfunction()

# tandem_bench(NAME SRCS ... DEPS ...): a measuring program; its --smoke run is part of the tests.
function(tandem_bench name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SRCS})
  target_link_libraries(${name} PRIVATE tandem_options)
  tandem_link(${name} PRIVATE ${ARG_DEPS})
  add_test(NAME ${name}_smoke COMMAND ${name} --smoke WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}")
  set_tests_properties(${name}_smoke PROPERTIES LABELS bench TIMEOUT 300)
endfunction()

# tandem_fuzz(NAME DEPS ...): builds NAME_fuzz.cc as a libFuzzer target and runs it briefly in ctest.
function(tandem_fuzz name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name}_fuzz ${name}_fuzz.cc)
  target_link_libraries(${name}_fuzz PRIVATE tandem_options -fsanitize=fuzzer)
  target_compile_definitions(${name}_fuzz PRIVATE TANDEM_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  tandem_link(${name}_fuzz PRIVATE ${ARG_DEPS})
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/corpus/${name}")
  set(seeds)
  if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}")
    set(seeds "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}")
  endif()
  add_test(NAME ${name}_fuzz COMMAND ${name}_fuzz -max_total_time=15 -rss_limit_mb=4096 -timeout=20
    "${CMAKE_CURRENT_BINARY_DIR}/corpus/${name}" ${seeds})
  set_tests_properties(${name}_fuzz PROPERTIES LABELS fuzz TIMEOUT 120)
endfunction()
