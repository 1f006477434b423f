#pragma once

#include <string>
#include <string_view>

// The files of tools/web that were built into the program.
namespace tessera::tools::internal {

std::string_view page_template();
std::string_view page_style();
std::string page_script();

// Returns the chart library; empty if npm did not deliver it.
std::string_view chart_library();

}  // namespace tessera::tools::internal
