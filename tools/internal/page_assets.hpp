#pragma once

#include <string>
#include <string_view>

// The files of tools/web as they were when the program was built.
namespace tessera::tools::internal {

std::string_view page_template();
std::string_view page_style();
std::string page_script();
// Empty when npm did not deliver it.
std::string_view chart_library();

}  // namespace tessera::tools::internal
