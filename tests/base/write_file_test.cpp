#include "tessera/base/write_file.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/internal/unfinished_files.hpp"
#include "tessera/tests/support/limited_files.hpp"
#include "tessera/tests/support/temporary_folder.hpp"

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::ptrdiff_t files_in(const test::TemporaryFolder& folder) {
  return std::distance(fs::directory_iterator(folder.path()), {});
}

// Returns true if the caller made a mistake, which is not what CannotWrite says.
template <class Body>
bool is_refused(Body&& body) {
  try {
    body();
  } catch (const CannotWrite&) {
    return false;
  } catch (const Error& error) {
    return error.code() == ErrorCode::InvalidArgument;
  }
  return false;
}

TEST(WriteFile, ReplacesTheWholeFileAndLeavesNoOther) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "figures";
  for (const ForceToDisk force : {ForceToDisk::Yes, ForceToDisk::No})
    for (const std::string& bytes : {std::string("long text\n"), std::string("\0\xff", 2)}) {
      write_file(path, bytes, force);
      EXPECT_EQ(read_file(path), bytes);
      EXPECT_EQ(files_in(folder), 1);
    }
}

TEST(WriteFileInPieces, HasAllPiecesOrKeepsTheOldFile) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "figures";
  write_file_in_pieces(path, [](const WritePiece& write) {
    for (const char* const piece : {"one ", "", "two"}) write(piece);
  });
  EXPECT_EQ(read_file(path), "one two");
  const auto fail = [](const WritePiece& write) {
    write("three");
    throw Error(ErrorCode::BadInput, "no more");
  };
  EXPECT_THROW(write_file_in_pieces(path, fail), Error);
  EXPECT_EQ(read_file(path), "one two");
  EXPECT_THROW(write_file_in_pieces(folder / "new", fail), Error);
  EXPECT_EQ(files_in(folder), 1);
}

TEST(WriteFile, NamesThePathAndTheReason) {
  const test::TemporaryFolder folder;
  const std::string lost = folder / "no folder/figures";
  EXPECT_THAT([&] { write_file(lost, "x"); },
              ThrowsMessage<Error>(AllOf(HasSubstr(lost + ": "), HasSubstr("No such file"))));
  const std::string taken = folder / "taken";
  fs::create_directory(taken);
  EXPECT_THAT([&] { write_file(taken, "x", ForceToDisk::No); },
              ThrowsMessage<Error>(HasSubstr(taken + ": cannot be written: Is a directory")));
  EXPECT_THROW(write_file(taken, "x"), CannotWrite);
  EXPECT_EQ(files_in(folder), 1);
}

TEST(WriteFile, KeepsThePermissionsOfTheFileThatItReplaces) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("script", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0751), 0);
  write_file(path, "new");
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0751u);
  EXPECT_EQ(read_file(path), "new");
}

TEST(WriteFile, FollowsLinksAndKeepsThem) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "far");
  const std::string target = folder / "far/figures", link = folder / "link";
  fs::create_symlink("far/figures", link);
  for (const char* bytes : {"created", "replaced"}) {
    write_file(link, bytes);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(read_file(target), bytes);
  }
}

TEST(WriteFile, RefusesLinksInACircle) {
  const test::TemporaryFolder folder;
  fs::create_symlink("circle", folder / "circle");
  EXPECT_THROW(write_file(folder / "circle", "x"), CannotWrite);
}

TEST(WriteFile, WritesToADeviceWithoutReplacingIt) {
  write_file("/dev/null", "x");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT([] { write_file("/dev/full", "x"); },
              ThrowsMessage<Error>("/dev/full: cannot be written: No space left on device"));
}

TEST(WriteFile, KeepsTheOldFileIfTheDiskIsFull) {
  const test::TemporaryFolder folder;
  const std::string path = folder.write("figures", "old");
  EXPECT_TRUE(test::cannot_write_beyond(1000, [&] { write_file(path, std::string(5000, 'x')); }));
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(files_in(folder), 1);
}

TEST(WriteFile, RemovesFilesOfDeadProcessesAndKeepsThoseOfOthers) {
  const test::TemporaryFolder folder;
  folder.write(internal::unfinished_name(), "left by a process that was killed");
  folder.write("notes.new", "a file of another kind");
  const auto living = internal::create_unfinished(folder / internal::unfinished_name());
  ASSERT_TRUE(living.is_open());
  write_file(folder / "figures", "x");
  EXPECT_EQ(files_in(folder), 3) << "figures, notes.new and the locked file";
}

TEST(WriteFile, LeavesNothingIfASignalEndsTheProcess) {
  const test::TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string path = folder / internal::unfinished_name();
    const internal::Unfinished entry(path);
    const auto file = internal::create_unfinished(path);
    remove_unfinished_files();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(files_in(folder), 0);
}

TEST(CheckWritable, AcceptsWhatCanBeWrittenAndChangesNothing) {
  const test::TemporaryFolder folder;
  fs::create_symlink("later", folder / "link");
  for (const std::string& path :
       {folder.write("old", "text"), folder / "new", folder / "link", std::string("/dev/null")})
    EXPECT_NO_THROW(check_writable(path)) << path;
  EXPECT_EQ(files_in(folder), 2);
  EXPECT_EQ(read_file(folder / "old"), "text");
}

TEST(CheckWritable, RefusesWithTheCodeOfAMistakeOfTheCaller) {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  for (const std::string& path :
       {folder / "none/figures", file + "/figures", folder.path().string(), file + "/",
        folder / std::string(300, 'x'), std::string("/proc/figures"), std::string()})
    EXPECT_TRUE(is_refused([&] { check_writable(path); })) << path;
}

TEST(CheckFolderWritable, LooksAtTheNearestFolderThatExists) {
  const test::TemporaryFolder folder;
  EXPECT_NO_THROW(check_folder_writable(folder.path().string()));
  EXPECT_NO_THROW(check_folder_writable(folder / "a/b/"));
  EXPECT_NO_THROW(check_folder_writable("a"));
  EXPECT_EQ(files_in(folder), 0);
  const std::string file = folder.write("file", "");
  for (const std::string& path :
       {file, file + "/a", std::string("/dev/null/a/b"), std::string("/proc/nowhere"),
        folder / std::string(300, 'x'), std::string(300, 'x')})
    EXPECT_TRUE(is_refused([&] { check_folder_writable(path); })) << path;
}

TEST(FileToWrite, IsWhereLinksLead) {
  const test::TemporaryFolder folder;
  const fs::path inside = fs::canonical(folder.path());
  fs::create_symlink("later", folder / "link");
  fs::create_symlink("circle", folder / "circle");
  EXPECT_EQ(file_to_write(folder / "link"), (inside / "later").string());
  EXPECT_EQ(file_to_write(folder / "./later"), (inside / "later").string());
  EXPECT_EQ(file_to_write(folder / "circle"), std::nullopt);
  EXPECT_EQ(file_to_write(folder / "no/such"), std::nullopt);
  EXPECT_EQ(file_to_write("/dev/null"), std::nullopt);
}

TEST(CheckStaysInside, RefusesWhatIsWrittenElsewhere) {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "out");
  fs::create_symlink("near", folder / "out/link");
  folder.write("out/old", "text");
  for (const char* name : {"new", "old", "link"})
    EXPECT_NO_THROW(check_stays_inside(folder / "out", name)) << name;
  fs::create_symlink(folder / "later", folder / "out/dangling");
  folder.write("there", "text");
  fs::create_symlink("../there", folder / "out/far");
  fs::create_symlink("dangling", folder / "out/chain");
  fs::create_directory(folder / "out/folder");
  ASSERT_EQ(::mkfifo((folder / "out/pipe").c_str(), 0600), 0);
  for (const char* name : {"dangling", "far", "chain", "../there", "..", "folder", "pipe"})
    EXPECT_THROW(check_stays_inside(folder / "out", name), CannotWrite) << name;
}

}  // namespace
}  // namespace tessera
