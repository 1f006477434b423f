// Checks the rules of the project that a program can check, over every file of the tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/tests/style/header_users.hpp"
#include "tessera/tests/style/option_fields.hpp"
#include "tessera/tests/style/rules.hpp"
#include "tessera/tests/style/source_tree.hpp"
#include "tessera/tests/style/tables.hpp"

namespace tessera::style {
namespace {

const std::vector<SourceFile>& tree() {
  static const std::vector<SourceFile> files = read_tree(TESSERA_SOURCE_DIR);
  return files;
}

bool has(const std::string& path) {
  return std::any_of(tree().begin(), tree().end(),
                     [&](const SourceFile& f) { return f.path == path; });
}

void expect_none(const Complaints& complaints) {
  for (const std::string& complaint : complaints) ADD_FAILURE() << complaint;
}

template <class Rule>
void expect_in_every_cpp_file(Rule rule) {
  for (const SourceFile& file : tree())
    if (is_cpp(file)) expect_none(rule(file));
}

// All other tests would pass on an empty list.
TEST(Tree, IsReadWithItsSourcesAndWithoutBuildFolders) {
  for (const char* path : {"base/error.hpp", "base/internal/executors.hpp", "base/README.md",
                           "tests/style/tree_test.cpp", "CMakeLists.txt"})
    EXPECT_TRUE(has(path)) << path;
  for (const SourceFile& file : tree()) {
    EXPECT_FALSE(file.path.starts_with("build/") || file.path.starts_with(".git/")) << file.path;
    EXPECT_FALSE(file.lines.empty() && is_cpp(file)) << file.path << " is empty";
  }
}

TEST(Layers, EveryIncludeFollowsAnArrow) {
  expect_in_every_cpp_file([](const SourceFile& f) { return check_arrows(f, arrows()); });
}

TEST(Layers, ArrowsPointDownwardsOnly) {
  for (const auto& [from, allowed] : arrows())
    for (const std::string& to : allowed) {
      const std::string owner = owner_of(to, arrows());
      if (to == kEverything) continue;
      ASSERT_FALSE(owner.empty()) << from << " -> " << to << " is no folder";
      EXPECT_FALSE(arrows().at(owner).contains(from)) << from << " and " << owner;
    }
}

TEST(Includes, AreWrittenFromTheRoot) { expect_in_every_cpp_file(check_include_form); }

TEST(Includes, ReachNobodyElsesInternals) { expect_in_every_cpp_file(check_internal); }

TEST(Headers, NameNoForeignLibrary) { expect_in_every_cpp_file(check_foreign); }

TEST(Headers, AreIncludedFirstByTheirSources) {
  expect_in_every_cpp_file([](const SourceFile& f) { return check_own_header(f, tree()); });
}

TEST(Headers, AreReadOnce) { expect_in_every_cpp_file(check_pragma_once); }

TEST(Namespaces, AreThoseOfTheirFolders) {
  expect_in_every_cpp_file([](const SourceFile& f) { return check_namespaces(f, arrows()); });
}

TEST(Keys, AreNotText) { expect_in_every_cpp_file(check_text_keys); }

TEST(Files, NameNoFolderOfSomebodysComputer) {
  for (const SourceFile& file : tree()) expect_none(check_machine_paths(file));
}

TEST(Comments, BeginWithASentence) { expect_in_every_cpp_file(check_comment_openings); }

TEST(Files, StayShort) { expect_none(check_length(tree(), long_files())); }

// Saved states have one form, io::Archive: no other source computes checksums of files or gives a
// file a mark, and every kind of state names itself to an Archive.
TEST(SavedStates, HaveOneForm) {
  static constexpr std::string_view kOfForms[] = {"crc32_z(", "boost/crc", "kMagic", "kMark",
                                                  "tessera_archive"};
  static constexpr std::string_view kKind = "Kind = \"";
  const std::set<std::string> of_other_forms{
      "io/npy.cpp",                    // NumPy's
      "io/stored_type.cpp",            // the mark is one of a path
      "distributed/communicator.cpp",  // checksums of messages
  };
  std::set<std::string> forms, kinds;
  for (const SourceFile& file : tree()) {
    if (!is_cpp(file) || file.path.starts_with("tests/") || file.path.starts_with("bench/"))
      continue;
    for (const std::string& line : file.lines) {
      const auto has = [&](std::string_view word) { return line.find(word) != line.npos; };
      if (std::ranges::any_of(kOfForms, has) && !of_other_forms.contains(file.path))
        forms.insert(file.path);
      if (const std::size_t at = line.find(kKind); at != line.npos)
        kinds.insert(line.substr(at + kKind.size(), line.rfind('"') - at - kKind.size()));
    }
  }
  EXPECT_EQ(forms, (std::set<std::string>{"io/archive.cpp", "io/internal/archive_seal.hpp"}));
  EXPECT_EQ(kinds, (std::set<std::string>{"a run on ranks", "a training run",
                                          "an encoded layer of tessera run",
                                          "the encoded weights of a network"}));
}

TEST(Options, AreReadByMoreThanTheirParsers) {
  std::vector<std::string> owners;
  for (const SourceFile& file : tree())
    for (const OptionField& field : option_fields(file)) owners.push_back(field.owner);
  for (const char* owner :
       {"Options", "PlanConstraints", "EncodeOptions", "PassOptions", "HostOptions"})
    EXPECT_NE(std::find(owners.begin(), owners.end(), owner), owners.end()) << owner;
  expect_none(check_options_read(tree(), unread_option_fields()));
}

TEST(Headers, AreReachedByACommandPythonOrAListedExample) {
  EXPECT_GT(public_headers(tree()).size(), 200u);
  EXPECT_GT(programs(tree()).size(), 100u);
  expect_none(check_headers_used(tree(), headers_without_a_user()));
}

TEST(Pages, EveryFolderHasOneThatNamesItsPublicHeaders) {
  for (const std::string& folder : folders_with_a_page())
    expect_none(check_page(folder, tree(), arrows()));
}

}  // namespace
}  // namespace tessera::style
