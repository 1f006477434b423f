#include "tessera/io/internal/archive.hpp"

#include <fmt/format.h>

#include <memory>
#include <set>

#include "tessera/base/error.hpp"

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

Members unpack(std::string_view, std::string_view) { refuse(); }
std::string pack(const Members&) { refuse(); }

#else

namespace {

constexpr zip_uint64_t kMostBytes = zip_uint64_t{4} << 30;
constexpr zip_uint64_t kMostRatio = 1100;  // deflate reaches 1032
constexpr std::size_t kChunk = 1 << 20;
constexpr zip_uint16_t kDosDate = 33;  // 1 January 1980, the first date of the format

struct Close {
  void operator()(zip_t* archive) const { zip_discard(archive); }
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, Close>;

class Unpacker {
 public:
  Unpacker(std::string_view bytes, std::string_view name) : name_(name) {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
    archive_.reset(source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error)
                          : nullptr);
    if (archive_ == nullptr && source != nullptr) zip_source_free(source);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    if (archive_ == nullptr) fail("this is not a zip archive: " + why);
  }

  Members all() {
    Members members;
    std::set<std::string> names;
    const zip_int64_t count = zip_get_num_entries(archive_.get(), 0);
    for (zip_uint64_t i = 0; i < zip_uint64_t(count); ++i) {
      zip_stat_t stat;
      if (zip_stat_index(archive_.get(), i, 0, &stat) != 0) fail("its table cannot be read");
      const std::string member = stat.name;
      if (!names.insert(member).second) fail(member + " appears twice");
      members.emplace_back(member, content(i, stat, member));
    }
    return members;
  }

 private:
  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::BadInput) const {
    throw Error(code, fmt::format("{}: {}", name_, message));
  }
  void check(zip_uint64_t size, zip_uint64_t packed, const std::string& member) const {
    if (size > kMostBytes - total_ || size > kMostRatio * packed + 1024)
      fail(fmt::format("{} unpacks to more than {} bytes from {} packed bytes; the limits are 4 "
                       "GiB in all and {} times the packed length",
                       member, size, packed, kMostRatio),
           ErrorCode::LimitExceeded);
  }
  std::string content(zip_uint64_t index, const zip_stat_t& stat, const std::string& member) {
    check(stat.size, stat.comp_size, member);
    const std::unique_ptr<zip_file_t, Close> file(zip_fopen_index(archive_.get(), index, 0));
    if (file == nullptr) fail(fmt::format("{}: {}", member, zip_strerror(archive_.get())));
    std::string text;
    for (;;) {
      const std::size_t before = text.size();
      text.resize(before + kChunk);
      const zip_int64_t read = zip_fread(file.get(), text.data() + before, kChunk);
      text.resize(before + std::size_t(std::max<zip_int64_t>(read, 0)));
      if (read < 0) fail(member + " is damaged");
      if (read == 0) break;
      check(text.size(), stat.comp_size, member);
    }
    if (text.size() != stat.size) fail(member + " is cut short");
    total_ += text.size();
    return text;
  }

  std::string name_;
  Archive archive_;
  zip_uint64_t total_ = 0;
};

}  // namespace

bool can_unpack() { return true; }

Members unpack(std::string_view bytes, std::string_view name) {
  return Unpacker(bytes, name).all();
}

std::string pack(const Members& members) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* target = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(target);
  Archive archive(zip_open_from_source(target, ZIP_TRUNCATE, &error));
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
