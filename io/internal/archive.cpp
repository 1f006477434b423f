#include "tessera/io/internal/archive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/io/internal/text.hpp"

#ifdef TESSERA_WITH_LIBZIP
#include <zip.h>
#endif

namespace tessera::io::internal {

#ifndef TESSERA_WITH_LIBZIP

bool can_unpack() { return false; }

namespace {

[[noreturn]] void refuse() {
  throw Error(
      ErrorCode::InvalidArgument,
      ".npz files need libzip, which this build does not have; install libzip-dev and build again");
}

}  // namespace

struct Archive::State {};
Archive::Archive(std::string_view, std::string_view) { refuse(); }
Archive::Archive(const std::string&) { refuse(); }
Archive::~Archive() = default;
bool Archive::has(const std::string&) const { refuse(); }
std::string Archive::read(const std::string&) { refuse(); }
struct Unpacking::State {};
Unpacking::Unpacking(Archive&, const std::string&) { refuse(); }
Unpacking::~Unpacking() = default;
std::string Unpacking::next(std::size_t) { refuse(); }
std::string pack(const Members&) { refuse(); }

#else

namespace {

constexpr zip_uint64_t kMostBytes = zip_uint64_t{4} << 30;
constexpr zip_uint64_t kAlwaysAllowed = zip_uint64_t{16} << 20;
// Index arrays of real matrices reach a ratio of about 20; arrays of equal values alone reach 1000.
constexpr zip_uint64_t kMostRatio = 256;
constexpr std::size_t kChunk = 1 << 20;
constexpr zip_uint16_t kDosDate = 33;  // 1 January 1980, the first date of the format

struct Close {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Handle = std::unique_ptr<zip_t, Close>;
using File = std::unique_ptr<zip_file_t, Close>;

}  // namespace

bool can_unpack() { return true; }

struct Archive::State {
  std::string_view name;
  Handle handle;
  std::map<std::string, zip_uint64_t> index_of;
  zip_uint64_t most = 0;   // bytes that may be unpacked in all
  zip_uint64_t total = 0;  // bytes that were unpacked

  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::BadInput) const {
    throw Error(code, fmt::format("{}: {}", name, message));
  }
  template <class MakeSource>
  void open(zip_uint64_t bytes, const MakeSource& make_source);
  File open_member(const std::string& member, zip_stat_t& stat) const;
  void list();
  void check(zip_uint64_t size, const std::string& member) const;
};

// `make_source` returns where the bytes of the archive are.
template <class MakeSource>
void Archive::State::open(zip_uint64_t bytes, const MakeSource& make_source) {
  most = std::min(kMostBytes, std::max(kAlwaysAllowed, kMostRatio * bytes));
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = make_source(&error);
  handle.reset(source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error) : nullptr);
  if (handle == nullptr && source != nullptr) zip_source_free(source);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (handle == nullptr) fail("this is not a zip archive: " + why);
}

void Archive::State::list() {
  const zip_int64_t count = zip_get_num_entries(handle.get(), 0);
  for (zip_uint64_t i = 0; i < zip_uint64_t(count); ++i) {
    const char* const member = zip_get_name(handle.get(), i, 0);
    if (member == nullptr) fail("its table cannot be read");
    if (!index_of.emplace(member, i).second) fail(internal::quoted(member) + " appears twice");
  }
}

void Archive::State::check(zip_uint64_t size, const std::string& member) const {
  if (size <= most - total) return;
  fail(fmt::format("the archive unpacks to more than {} bytes at {}; the limits are {} times the "
                   "bytes of the archive (16 MiB is always allowed) and 4 GiB",
                   most, internal::quoted(member), kMostRatio),
       ErrorCode::LimitExceeded);
}

Archive::Archive(std::string_view bytes, std::string_view name)
    : state_(std::make_unique<State>()) {
  state_->name = name;
  state_->open(bytes.size(), [bytes](zip_error_t* error) {
    return zip_source_buffer_create(bytes.data(), bytes.size(), 0, error);
  });
  state_->list();
}

Archive::Archive(const std::string& path) : state_(std::make_unique<State>()) {
  state_->name = path;
  std::error_code failure;
  const std::uintmax_t bytes = std::filesystem::file_size(path, failure);
  if (failure) state_->fail("the file cannot be read");
  state_->open(bytes, [&path](zip_error_t* error) {
    return zip_source_file_create(path.c_str(), 0, -1, error);
  });
  state_->list();
}

Archive::~Archive() = default;

bool Archive::has(const std::string& member) const { return state_->index_of.count(member) != 0; }

File Archive::State::open_member(const std::string& member, zip_stat_t& stat) const {
  const auto found = index_of.find(member);
  if (found == index_of.end() || zip_stat_index(handle.get(), found->second, 0, &stat) != 0)
    fail("the archive has no file " + internal::quoted(member));
  File file(zip_fopen_index(handle.get(), found->second, 0));
  if (file == nullptr)
    fail(fmt::format("{}: {}", internal::quoted(member), zip_strerror(handle.get())));
  return file;
}

std::string Archive::read(const std::string& member) {
  State& s = *state_;
  zip_stat_t stat;
  const File file = s.open_member(member, stat);
  s.check(stat.size, member);
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + kChunk);
    const zip_int64_t read = zip_fread(file.get(), text.data() + before, kChunk);
    text.resize(before + std::size_t(std::max<zip_int64_t>(read, 0)));
    if (read < 0) s.fail(internal::quoted(member) + " is damaged");
    if (read == 0) break;
    s.check(text.size(), member);
  }
  if (text.size() != stat.size) s.fail(internal::quoted(member) + " is cut short");
  s.total += text.size();
  return text;
}

struct Unpacking::State {
  const Archive::State& archive;
  std::string member;
  File file;
};

Unpacking::Unpacking(Archive& archive, const std::string& member) {
  zip_stat_t stat;
  File file = archive.state_->open_member(member, stat);
  state_.reset(new State{*archive.state_, member, std::move(file)});
}

Unpacking::~Unpacking() = default;

std::string Unpacking::next(std::size_t most) {
  std::string bytes(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const zip_int64_t read = zip_fread(state_->file.get(), bytes.data() + size, most - size);
    if (read < 0) state_->archive.fail(internal::quoted(state_->member) + " is damaged");
    if (read == 0) break;
    size += std::size_t(read);
  }
  bytes.resize(size);
  return bytes;
}

std::string pack(const Members& members) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  Handle archive(zip_open_from_source(target, ZIP_TRUNCATE, &error));
  TESSERA_ASSERT(archive != nullptr);
  for (const auto& [name, content] : members) {
    zip_source_t* source = zip_source_buffer(archive.get(), content.data(), content.size(), 0);
    const zip_int64_t index = zip_file_add(archive.get(), name.c_str(), source, 0);
    TESSERA_ASSERT(index >= 0);
    zip_file_set_dostime(archive.get(), zip_uint64_t(index), 0, kDosDate, 0);
  }
  TESSERA_ASSERT(zip_close(archive.release()) == 0);
  zip_stat_t stat;
  TESSERA_ASSERT(zip_source_open(target) == 0 && zip_source_stat(target, &stat) == 0);
  std::string bytes(stat.size, '\0');
  TESSERA_ASSERT(zip_source_read(target, bytes.data(), bytes.size()) == zip_int64_t(bytes.size()));
  zip_source_close(target);
  zip_source_free(target);
  return bytes;
}

#endif

}  // namespace tessera::io::internal
