# The three kinds of target in this project. A folder's CMakeLists.txt is a list and nothing else.

set(TESSERA_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)

# Language level, warnings and instrumentation, the same for every target of ours.
add_library(tessera_flags INTERFACE)
target_compile_features(tessera_flags INTERFACE cxx_std_20)
target_compile_options(tessera_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  # Fields left out of a designated initialiser take the default written beside them.
  -Wno-missing-field-initializers
  # g++ 12 sees overlaps in "text" + std::string that are not there (its bug 105651).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  # std::stable_sort of libstdc++ 12 uses what clang 19 calls deprecated.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
# Products and sums keep their written rounding: results must not depend on what the compiler fuses.
target_compile_options(tessera_flags INTERFACE -ffp-contract=off)
if(TESSERA_SANITIZE)
  # g++ 12 takes instrumented std::function and std::regex for uninitialised memory.
  target_compile_options(tessera_flags INTERFACE
    -Wno-maybe-uninitialized -O1 -g1 -fsanitize=${TESSERA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(tessera_flags INTERFACE -fsanitize=${TESSERA_SANITIZE})
endif()
if(TESSERA_COVERAGE)
  target_compile_options(tessera_flags INTERFACE --coverage)
  target_link_options(tessera_flags INTERFACE --coverage)
endif()

# A folder of the library: tessera_module(<name> HEADERS ... SOURCES ... USES <targets> [PRIVATE <targets>])
# Headers must compile alone (checked). USES is seen by includers, PRIVATE is not.
function(tessera_module name)
  cmake_parse_arguments(ARG "" "" "HEADERS;SOURCES;USES;PRIVATE" ${ARGN})
  set(target tessera_${name})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  list(TRANSFORM ARG_HEADERS PREPEND ${TESSERA_INCLUDE_DIR}/tessera/${folder}/)
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(tessera::${name} ALIAS ${target})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${TESSERA_INCLUDE_DIR}
                                         FILES ${ARG_HEADERS})
  target_link_libraries(${target} PUBLIC ${ARG_USES} PRIVATE tessera_flags ${ARG_PRIVATE})
  target_compile_features(${target} PUBLIC cxx_std_20)
endfunction()

# A command-line program: tessera_tool(<name> SOURCES ... USES <targets>)
function(tessera_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE tessera_flags ${ARG_USES})
endfunction()

# The tests of one folder, one program: tessera_tests(<name> SOURCES ... USES <targets>)
function(tessera_tests name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  set(target ${name}_tests)
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE tessera_flags ${ARG_USES} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE TESSERA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
endfunction()
