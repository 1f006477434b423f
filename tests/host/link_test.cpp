// The targets that come with a library when it is linked, as CMake knows them
// (cmake/link_closure.cmake).

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

namespace tessera::host {
namespace {

std::set<std::string> names_in(const std::string& list) {
  std::istringstream in(list);
  std::set<std::string> names;
  for (std::string name; in >> name;) names.insert(name);
  return names;
}

TEST(HostLibrary, ComesWithoutPlannerEngineAndReports) {
  const std::set<std::string> host = names_in(TESSERA_HOST_LINKS);
  for (const char* needed : {"tessera_base", "tessera_sparse", "tessera_codelets",
                             "tessera_partitioner", "tessera_verify"})
    EXPECT_TRUE(host.contains(needed)) << needed;
  for (const char* refused : {"tessera_planner", "tessera_device", "tessera_runtime",
                              "tessera_report", "tessera_train", "tessera_io"})
    EXPECT_FALSE(host.contains(refused)) << "tessera_host links " << refused;
}

TEST(HostLibrary, IsComparedWithAListThatFollowsLinks) {
  const std::set<std::string> runtime = names_in(TESSERA_RUNTIME_LINKS);
  for (const char* linked : {"tessera_planner", "tessera_device"})
    EXPECT_TRUE(runtime.contains(linked)) << linked;
}

}  // namespace
}  // namespace tessera::host
