# The three kinds of target in this project. A folder's CMakeLists.txt is a list and nothing else.

set(TESSERA_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
include(${CMAKE_CURRENT_LIST_DIR}/exports.cmake)
if(TESSERA_SHARED)
  set(CMAKE_INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR} $ORIGIN)
endif()
set(CMAKE_VERIFY_INTERFACE_HEADER_SETS ON)
# The minor version is in it as long as the major one is 0: interfaces may change with it.
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(TESSERA_SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
else()
  set(TESSERA_SOVERSION ${PROJECT_VERSION_MAJOR})
endif()

# Language level and warnings, the same for every target of ours.
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
if(TESSERA_INSTRUCTION_SETS STREQUAL "native")  # see base/vector_targets.hpp
  include(CheckCXXSourceRuns)
  set(CMAKE_REQUIRED_QUIET ON)
  check_cxx_source_runs("int main() { return __builtin_cpu_supports(\"avx512bw\") ? 0 : 1; }" TESSERA_CPU_HAS_AVX512)
  target_compile_definitions(tessera_flags INTERFACE
    $<IF:$<BOOL:${TESSERA_CPU_HAS_AVX512}>,TESSERA_WITHOUT_AVX2,TESSERA_WITHOUT_AVX3>)
elseif(NOT TESSERA_INSTRUCTION_SETS STREQUAL "all")
  message(FATAL_ERROR "TESSERA_INSTRUCTION_SETS=${TESSERA_INSTRUCTION_SETS}: it is 'all' or 'native'")
endif()
# Products and sums keep their written rounding: results must not depend on what the compiler fuses.
target_compile_options(tessera_flags INTERFACE -ffp-contract=off)
add_library(tessera_instrumented INTERFACE)
if(TESSERA_SANITIZE)
  # A null pointer and a pointer that wraps around stop a program without being looked for, and the four checks left
  # out double the time to compile.
  target_compile_options(tessera_instrumented INTERFACE -fsanitize=${TESSERA_SANITIZE}
    -fno-sanitize=null,vptr,object-size,pointer-overflow -fno-sanitize-recover=all)
  # g++ 12 takes instrumented std::function and std::regex for uninitialised memory.
  target_compile_options(tessera_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> -Og -g1 -fno-omit-frame-pointer)
  target_link_options(tessera_flags INTERFACE -fsanitize=${TESSERA_SANITIZE})
  # The operator new of some tests must come before that of the runtime library, so the library is a shared one.
  if(TESSERA_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.tsan-${CMAKE_SYSTEM_PROCESSOR}.so
      OUTPUT_VARIABLE TESSERA_TSAN_LIBRARY OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    get_filename_component(TESSERA_TSAN_FOLDER ${TESSERA_TSAN_LIBRARY} REALPATH)
    get_filename_component(TESSERA_TSAN_FOLDER ${TESSERA_TSAN_FOLDER} DIRECTORY)
    target_link_options(tessera_flags INTERFACE -shared-libsan -Wl,-rpath,${TESSERA_TSAN_FOLDER})
  endif()
  target_compile_definitions(tessera_flags INTERFACE TESSERA_SANITIZED)
endif()
# A check looks at memory in what its tests run themselves; these libraries are linked to make plans and reports for them.
set(TESSERA_ONLY_LINKED "")
if(TESSERA_SANITIZE MATCHES "address" AND NOT TESSERA_ALL_FOLDERS)
  set(TESSERA_ONLY_LINKED planner collectives report report_page study train distributed)
endif()
# Tests are compiled once and run once: optimising them takes longer than it saves, and with sanitizers even
# -Og takes twice as long as no optimisation.
add_library(tessera_test_flags INTERFACE)
if(TESSERA_SANITIZE)
  target_compile_options(tessera_test_flags INTERFACE -O0)
else()
  target_compile_options(tessera_test_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-Og>)
endif()
# Programs, reports and written forms do little but call others, and take three times as long to compile with full
# optimisation as with -O1. The folders in this list compute.
set(TESSERA_COMPUTING base sparse io verify device codelets planner partitioner layer host runtime pod train distributed)
if(TESSERA_LIGHT_MODEL)
  list(REMOVE_ITEM TESSERA_COMPUTING io verify device planner runtime pod train distributed)
endif()
add_library(tessera_light_flags INTERFACE)
if(TESSERA_SANITIZE)  # there the loops of kernels and encoder count, and little else
  list(REMOVE_ITEM TESSERA_COMPUTING io verify planner runtime pod train distributed)
  target_compile_options(tessera_light_flags INTERFACE -O0)
else()
  target_compile_options(tessera_light_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-O1>)
endif()
if(TESSERA_GROUPED)  # names of one test may hide those of another in its group, and clang warns of that
  target_compile_options(tessera_test_flags INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-shadow>)
endif()
if(TESSERA_FUZZ AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "TESSERA_FUZZ needs libFuzzer, which is part of clang: set CMAKE_CXX_COMPILER to clang++-19")
endif()
if(TESSERA_COVERAGE)
  target_compile_options(tessera_flags INTERFACE --coverage)
  target_link_options(tessera_flags INTERFACE --coverage)
endif()

# Sources of a group see what those before them include and define. Sanitized builds group other sources together than
# plain builds, so that a source which lacks something of its own does not compile there: the sources are dealt out like
# cards, to one group more than a plain build has.
function(tessera_group target)
  set(size 16)
  if(TESSERA_SANITIZE)
    get_target_property(sources ${target} SOURCES)
    list(LENGTH sources count)
    math(EXPR groups "(${count} + ${size} - 1) / ${size} + 1")
    set(dealt "")
    math(EXPR last_group "${groups} - 1")
    math(EXPR last "${count} - 1")
    foreach(group RANGE ${last_group})
      if(group LESS count)
        foreach(i RANGE ${group} ${last} ${groups})
          list(GET sources ${i} source)
          list(APPEND dealt ${source})
        endforeach()
      endif()
    endforeach()
    math(EXPR size "(${count} + ${groups} - 1) / ${groups}")
    set_target_properties(${target} PROPERTIES SOURCES "${dealt}")
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# A folder of the library: tessera_module(<name> HEADERS ... SOURCES ... USES <targets> [PRIVATE <targets>])
# Headers must compile alone: a source of the same name includes its own first, the others are compiled. USES is seen by includers, PRIVATE is not. INSIDE: for programs
# of this tree only, part of them and never a shared library.
function(tessera_module name)
  cmake_parse_arguments(ARG "INSIDE" "" "HEADERS;SOURCES;USES;PRIVATE" ${ARGN})
  set(target tessera_${name})
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(sourced "")
  set(unsourced "")
  foreach(header IN LISTS ARG_HEADERS)
    string(REGEX REPLACE "hpp$" "cpp" source ${header})
    set(path ${TESSERA_INCLUDE_DIR}/tessera/${folder}/${header})
    if(source IN_LIST ARG_SOURCES)
      list(APPEND sourced ${path})
    else()
      list(APPEND unsourced ${path})
    endif()
  endforeach()
  if(TESSERA_SHARED AND NOT ARG_INSIDE)
    add_library(${target} SHARED ${ARG_SOURCES})
    tessera_export_own_names(${target} ${name} ${folder})
    # A call inside a library may be inlined though others could, in theory, replace the function.
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  else()
    add_library(${target} STATIC ${ARG_SOURCES})
  endif()
  if(NOT name STREQUAL codelets)  # its kernels are many instances of few sources
    if(TESSERA_GROUPED)
      # g++ warns of members whose type is in an anonymous namespace of a source it takes for a header.
      tessera_group(${target})
      target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    endif()
    if(TESSERA_FUZZ)  # counts the edges that an input reaches
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endif()
  add_library(tessera::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERSION ${PROJECT_VERSION}
    SOVERSION ${TESSERA_SOVERSION})
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${TESSERA_INCLUDE_DIR} FILES ${unsourced}
    FILE_SET sourced TYPE HEADERS BASE_DIRS ${TESSERA_INCLUDE_DIR} FILES ${sourced})
  set_target_properties(${target} PROPERTIES INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
  # Headers that only our sources include are nothing an installed library needs.
  list(TRANSFORM ARG_PRIVATE REPLACE "^(Boost::headers|nlohmann_json::.*)$" "$<BUILD_INTERFACE:\\1>")
  target_link_libraries(${target} PUBLIC ${ARG_USES}
    PRIVATE $<BUILD_INTERFACE:tessera_flags> ${ARG_PRIVATE})
  if(NOT name IN_LIST TESSERA_COMPUTING)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tessera_light_flags>)
  endif()
  if(NOT name IN_LIST TESSERA_ONLY_LINKED)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:tessera_instrumented>)
  endif()
  target_compile_features(${target} PUBLIC cxx_std_20)
endfunction()

# What cmake --install takes: these folders' libraries and headers, each a component for find_package,
# and these programs.
function(tessera_install)
  cmake_parse_arguments(ARG "" "" "MODULES;PROGRAMS" ${ARGN})
  set(libraries ${ARG_MODULES})
  list(TRANSFORM libraries PREPEND tessera_)
  install(TARGETS ${libraries} EXPORT tesseraTargets FILE_SET HEADERS FILE_SET sourced)
  install(TARGETS ${ARG_PROGRAMS})
  install(FILES tessera.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
  install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${package})
  string(REPLACE ";" " " TESSERA_COMPONENTS "${ARG_MODULES}")
  configure_package_config_file(cmake/tesseraConfig.cmake.in ${PROJECT_BINARY_DIR}/tesseraConfig.cmake
    INSTALL_DESTINATION ${package})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  list(TRANSFORM libraries PREPEND -l OUTPUT_VARIABLE TESSERA_LINK)
  list(REVERSE TESSERA_LINK)  # a library stands before those it uses
  string(REPLACE ";" " " TESSERA_LINK "${TESSERA_LINK}")
  # Shared libraries know what they need; users of static ones link it.
  set(TESSERA_LINK_ALSO "${TESSERA_OTHER_LIBRARIES} -pthread")
  set(TESSERA_LINK_INSIDE "")
  if(TESSERA_SHARED)
    set(TESSERA_LINK_INSIDE "${TESSERA_LINK_ALSO}")
    set(TESSERA_LINK_ALSO "")
  endif()
  file(RELATIVE_PATH TESSERA_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(cmake/tessera.pc.in ${PROJECT_BINARY_DIR}/tessera.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/tesseraConfig.cmake
    ${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake DESTINATION ${package})
  install(FILES ${PROJECT_BINARY_DIR}/tessera.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(FILES docs/report.schema.json docs/host_plan.schema.json docs/study.schema.json LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/tessera)
  # The pages and what they tell to run, in the folders of the tree, so that the links between them hold.
  install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(DIRECTORY bench/results DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench)
  install(DIRECTORY docs examples data DESTINATION ${CMAKE_INSTALL_DOCDIR}
    PATTERN Doxyfile EXCLUDE PATTERN "*.awk" EXCLUDE PATTERN "*.dox" EXCLUDE
    PATTERN CMakeLists.txt EXCLUDE PATTERN __pycache__ EXCLUDE)
endfunction()

# A command-line program: tessera_tool(<name> SOURCES ... USES <targets>)
function(tessera_tool name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE tessera_flags tessera_instrumented ${ARG_USES})
endfunction()

# Precompiles the headers of the test framework once for all test programs. They belong to a program without tests,
# since the programs that share them must be compiled with the same options.
function(tessera_share_test_headers target)
  if(NOT TARGET tessera_test_headers)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cpp CONTENT "")
    add_executable(tessera_test_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/test_headers.cpp)
    target_link_libraries(tessera_test_headers PRIVATE tessera_flags tessera_instrumented tessera_test_flags GTest::gtest GTest::gmock GTest::gtest_main)
    target_compile_definitions(tessera_test_headers PRIVATE TESSERA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    # More headers than these would take longer to read than they save. Builds that compile every source alone have
    # none, so that they find a test which does not include what it uses.
    target_precompile_headers(tessera_test_headers PRIVATE <algorithm> <functional> <map> <memory> <optional> <span>
      <sstream> <string> <variant> <vector> <gtest/gtest.h> <gmock/gmock.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM tessera_test_headers)
endfunction()

# The tests of one folder, one program: tessera_tests(<name> SOURCES ... [ALONE ...] [THREADED ...] USES <targets>)
# ALONE: those of the sources that give a name to another thing than a source beside them, so that no group holds both.
# THREADED: sources of which some start threads; with ThreadSanitizer they are all there is.
function(tessera_tests name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;THREADED;USES" ${ARGN})
  set(target ${name}_tests)
  if(TESSERA_SANITIZE STREQUAL "thread" AND ARG_THREADED)
    set(ARG_SOURCES "")
  endif()
  add_executable(${target} ${ARG_SOURCES} ${ARG_THREADED})
  set_source_files_properties(${ARG_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_link_libraries(${target} PRIVATE tessera_flags tessera_instrumented tessera_test_flags ${ARG_USES} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE TESSERA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(TESSERA_GROUPED)
    tessera_share_test_headers(${target})
    # Most of the time of a test goes into reading headers. Helpers of tests are in anonymous namespaces, so two
    # sources of a group must not give one name to different things.
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
  if(TESSERA_SANITIZE)  # starting an instrumented program takes longer than most tests
    foreach(part RANGE 3)
      add_test(NAME ${name}_${part} COMMAND ${target})
      set_tests_properties(${name}_${part} PROPERTIES TIMEOUT 1200
        ENVIRONMENT "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${part}")
    endforeach()
  else()
    gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
  endif()
endfunction()
