# The check of exported names accepts ours and rejects each kind that must stay inside.
include(${CMAKE_CURRENT_LIST_DIR}/names.cmake)
function(expect_foreign count folder line)
  foreign_names(found ${folder} "${line}\n")
  list(LENGTH found got)
  if(NOT got EQUAL count)
    message(FATAL_ERROR "${folder}: '${line}' is foreign: ${got}, not ${count}")
  endif()
endfunction()

expect_foreign(0 base "tessera::ceil_div@@TESSERA_0.1 T 10 20")
expect_foreign(0 base "typeinfo for tessera::Error@@TESSERA_0.1 V 10 20")
# GNU and LLVM print the version node itself in two ways.
expect_foreign(0 base "TESSERA_0.1 A 0 ")
expect_foreign(0 base "TESSERA_0.1@@TESSERA_0.1 A 0 0")
expect_foreign(0 base "tessera::internal::matrix_elements@@TESSERA_0.1 T 10 20")
foreach(name "fmt::v9::format" "nlohmann::json_abi_v3_11_2::basic_json<>" "std::vector<tessera::planner::Plan>::at"
        "boost::detail::x" "hwy::N_AVX2::x" "tessera::sparse::read" "tessera::planner::internal::search"
        "tessera::v1::planner::plan" "typeinfo for nlohmann::json" "vtable for tessera::planner::internal::X" "main")
  expect_foreign(1 planner "${name}@@TESSERA_0.1 T 10 20")
endforeach()
