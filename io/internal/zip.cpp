#include "tessera/io/internal/zip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
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

struct ZipArchive::State {};
ZipArchive::ZipArchive(std::string_view, std::string_view) { refuse(); }
ZipArchive::ZipArchive(const InputFile&, const std::string&) { refuse(); }
ZipArchive::~ZipArchive() = default;
bool ZipArchive::has(const std::string&) const { refuse(); }
std::string ZipArchive::read(const std::string&) { refuse(); }
void ZipArchive::read_pieces(const std::string&, const std::function<bool(std::string_view)>&) {
  refuse();
}
std::int64_t ZipArchive::declared_bytes(const std::string&) const { refuse(); }
std::int64_t ZipArchive::packed_bytes() const { refuse(); }
struct Unpacking::State {};
Unpacking::Unpacking(ZipArchive&, const std::string&) { refuse(); }
Unpacking::~Unpacking() = default;
std::string Unpacking::next(std::size_t) { refuse(); }
std::string pack(const Members&, PackLevel) { refuse(); }

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

struct ZipArchive::State {
  std::string_view name;
  Handle handle;
  std::map<std::string, zip_uint64_t> index_of;
  zip_uint64_t packed = 0;  // bytes of the archive
  zip_uint64_t most = 0;    // bytes that may be unpacked in all
  zip_uint64_t total = 0;   // bytes that were unpacked

  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::BadInput) const {
    throw_fault_of_file(code, fmt::format("{}: {}", name, message));
  }
  void open(zip_uint64_t bytes, const std::function<zip_source_t*(zip_error_t&)>& make_source);
  void list();
  zip_stat_t find(const std::string& member) const;
  File open_member(const zip_stat_t& stat, const std::string& member) const;
  void check(zip_uint64_t size, const std::string& member) const;
};

void ZipArchive::State::open(zip_uint64_t bytes,
                             const std::function<zip_source_t*(zip_error_t&)>& make_source) {
  packed = bytes;
  // Beyond 4 GiB the product would not fit its type.
  most = std::min(kMostBytes, std::max(kAlwaysAllowed, kMostRatio * std::min(kMostBytes, bytes)));
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* source = make_source(error);
  handle.reset(source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error) : nullptr);
  if (handle == nullptr && source != nullptr) zip_source_free(source);
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (handle == nullptr) fail("this is not a zip archive: " + why);
}

void ZipArchive::State::list() {
  const zip_int64_t count = zip_get_num_entries(handle.get(), 0);
  for (zip_uint64_t i = 0; i < zip_uint64_t(count); ++i) {
    const char* const member = zip_get_name(handle.get(), i, 0);
    if (member == nullptr) fail("its table cannot be read");
    if (!index_of.emplace(member, i).second) fail(internal::quoted(member) + " appears twice");
  }
}

void ZipArchive::State::check(zip_uint64_t size, const std::string& member) const {
  if (size <= most - total) return;
  fail(fmt::format("the archive unpacks to more than {} bytes at {}; the limits are {} times the "
                   "bytes of the archive (16 MiB is always allowed) and 4 GiB",
                   most, internal::quoted(member), kMostRatio),
       ErrorCode::LimitExceeded);
}

zip_stat_t ZipArchive::State::find(const std::string& member) const {
  const auto found = index_of.find(member);
  zip_stat_t stat;
  if (found == index_of.end() || zip_stat_index(handle.get(), found->second, 0, &stat) != 0)
    fail("the archive has no file " + internal::quoted(member));
  return stat;
}

File ZipArchive::State::open_member(const zip_stat_t& stat, const std::string& member) const {
  File file(zip_fopen_index(handle.get(), stat.index, 0));
  if (file == nullptr)
    fail(fmt::format("{}: {}", internal::quoted(member), zip_strerror(handle.get())));
  return file;
}

ZipArchive::ZipArchive(std::string_view bytes, std::string_view name)
    : state_(std::make_unique<State>()) {
  state_->name = name;
  state_->open(bytes.size(), [&](zip_error_t& error) {
    return zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  });
  state_->list();
}

ZipArchive::ZipArchive(const InputFile& file, const std::string& path)
    : state_(std::make_unique<State>()) {
  state_->name = path;
  state_->open(zip_uint64_t(file.bytes()), [&](zip_error_t& error) {
    return zip_source_file_create(path.c_str(), 0, file.bytes(), &error);
  });
  state_->list();
}

ZipArchive::~ZipArchive() = default;

bool ZipArchive::has(const std::string& member) const {
  return state_->index_of.count(member) != 0;
}

std::int64_t ZipArchive::declared_bytes(const std::string& member) const {
  return std::int64_t(state_->find(member).size);
}

std::int64_t ZipArchive::packed_bytes() const { return std::int64_t(state_->packed); }

std::string ZipArchive::read(const std::string& member) {
  std::string text;
  read_pieces(member, [&](std::string_view piece) {
    text += piece;
    return true;
  });
  return text;
}

void ZipArchive::read_pieces(const std::string& member,
                             const std::function<bool(std::string_view piece)>& take) {
  State& s = *state_;
  const zip_stat_t stat = s.find(member);
  s.check(stat.size, member);
  const File file = s.open_member(stat, member);
  std::string piece(kChunk, '\0');
  zip_uint64_t total = 0;
  for (;;) {
    std::size_t there = 0;
    for (zip_int64_t read = 1; read > 0 && there < kChunk; there += std::size_t(read)) {
      read = zip_fread(file.get(), piece.data() + there, kChunk - there);
      if (read < 0) s.fail(internal::quoted(member) + " is damaged");
    }
    if (there == 0) break;
    total += there;
    s.check(total, member);
    if (!take(std::string_view(piece).substr(0, there))) return;
  }
  if (total != stat.size) s.fail(internal::quoted(member) + " is cut short");
  s.total += total;
}

struct Unpacking::State {
  const ZipArchive::State& archive;
  std::string member;
  File file;
};

Unpacking::Unpacking(ZipArchive& archive, const std::string& member) {
  const ZipArchive::State& all = *archive.state_;
  state_.reset(new State{all, member, all.open_member(all.find(member), member)});
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

std::string pack(const Members& members, PackLevel level) {
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
    zip_set_file_compression(archive.get(), zip_uint64_t(index), ZIP_CM_DEFLATE,
                             zip_uint32_t(level));
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
