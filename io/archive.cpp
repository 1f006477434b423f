#include "tessera/io/archive.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/io/internal/archive_seal.hpp"
#include "tessera/io/internal/safetensors_head.hpp"
#include "tessera/io/internal/text.hpp"
#include "tessera/json/reader.hpp"

namespace tessera::io {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied byte by byte");

using Sides = std::vector<std::int64_t>;

constexpr std::int64_t kPiece = 1 << 20;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  constexpr std::size_t kMostShown = 8;
  if (shape.size() > kMostShown) return fmt::format("of {} sides", shape.size());
  std::vector<std::string> sides;
  for (const std::int64_t side : shape)
    sides.push_back(side == Archive::kAnyCount ? "any" : std::to_string(side));
  return fmt::format("[{}]", fmt::join(sides, "]["));
}

std::uint32_t crc_of(std::uint32_t before, std::string_view bytes) {
  return std::uint32_t(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

namespace internal {

std::uint32_t archive_checksum(const TextSource& file) {
  static_assert(kSealEnd < kPiece);
  std::string buffer;
  std::uint32_t crc = 0;
  for (std::int64_t at = 0; at < file.bytes(); at += kPiece) {
    std::string_view piece = file.piece(at, kPiece, buffer);
    if (at == 0) {
      crc = crc_of(crc, piece.substr(0, std::size_t(kDigitsBegin)));
      crc = crc_of(crc, kNoDigits);
      piece.remove_prefix(std::min(piece.size(), std::size_t(kSealEnd)));
    }
    crc = crc_of(crc, piece);
  }
  return crc;
}

std::uint32_t seal_archive(std::string& bytes) {
  const std::uint32_t checksum = archive_checksum(TextInMemory(bytes));
  bytes.replace(std::size_t(kDigitsBegin), kNoDigits.size(), fmt::format("{:08x}", checksum));
  return checksum;
}

}  // namespace internal

Archive::Archive(std::string kind) : kind_(std::move(kind)) {}

Archive::Archive(std::unique_ptr<const internal::TextSource> file, std::string_view name,
                 std::string_view kind, Checksum checksum)
    : name_(name), file_(std::move(file)) {
  std::string buffer;
  std::string_view rest = file_->piece(0, internal::kSealEnd, buffer);
  rest.remove_prefix(std::min(rest.size(), std::size_t(internal::kMarkBegin)));
  if (!rest.starts_with(internal::kMark))
    refuse(
        "byte 8: this is no state that a program of Tessera has saved; give a file that one has "
        "written");
  rest.remove_prefix(internal::kMark.size());
  if (const auto version = rest.substr(0, rest.find('"')); version != internal::kVersion)
    refuse(
        fmt::format("it has the form of version {}, and this program reads version {}; save the "
                    "state again with this program",
                    internal::quoted(version), internal::kVersion));
  rest.remove_prefix(std::min(rest.size(), internal::kVersion.size() + internal::kBetween.size()));
  const std::string digits(rest);
  checksum_ = std::uint32_t(std::strtoul(digits.c_str(), nullptr, 16));
  if (fmt::format("{:08x}", checksum_) != digits ||
      (checksum == Checksum::Compare && internal::archive_checksum(*file_) != checksum_))
    refuse(
        "the checksum is wrong: the file was cut, or bytes of it have changed; copy or save it "
        "again");
  read_head(kind);
}

void Archive::read_head(std::string_view kind) {
  internal::SafetensorsHead head = internal::read_safetensors_head(*file_, name_);
  const std::string place = name_ + ": notes";
  std::string text;
  json::ObjectReader notes(head.notes, {place, ""});
  notes("kind", kind_);
  notes("head", text);
  if (kind_ != kind)
    refuse(fmt::format("this is {} that was saved; \"{}\" is needed here", json::shown({kind_}),
                       kind));
  json::Value fields = json::parse(text, name_ + ": head");
  if (!std::holds_alternative<json::Object>(fields.data))
    json::throw_bad({name_, "the head"}, fields, "an object");
  for (auto& [key, value] : std::get<json::Object>(fields.data)) fields_[key] = std::move(value);
  data_begin_ = head.data_begin;
  for (TensorInfo& tensor : head.tensors) {
    unasked_.insert(tensor.name);
    std::string tensor_name = tensor.name;
    stored_.emplace(std::move(tensor_name), std::move(tensor));
  }
}

std::unique_ptr<Archive> Archive::open(const std::string& path, std::string_view kind,
                                       Checksum checksum) {
  return std::unique_ptr<Archive>(
      new Archive(std::make_unique<internal::TextOfFile>(path), path, kind, checksum));
}

std::unique_ptr<Archive> Archive::of_bytes(std::string_view bytes, std::string_view name,
                                           std::string_view kind) {
  return std::unique_ptr<Archive>(
      new Archive(std::make_unique<internal::TextInMemory>(bytes), name, kind, Checksum::Compare));
}

Archive::~Archive() = default;

void Archive::refuse(const std::string& reason) const {
  if (is_read()) throw Error(ErrorCode::BadInput, fmt::format("{}: {}", name_, reason));
  throw Error(ErrorCode::InvalidArgument, fmt::format("saving {}: {}", kind_, reason));
}

// Returns a field of the file, which then counts as known.
json::Value Archive::take(std::string_view key) {
  const auto found = fields_.extract(full(key));
  if (found.empty()) json::throw_missing({name_, "field " + full(key)});
  return found.mapped();
}

template <class T, class... Legal>
void Archive::field(std::string_view key, T& value, const Legal&... legal) {
  if (is_read())
    json::read(take(key), {name_, "field " + full(key)}, value, legal...);
  else
    head_.push_back({full(key), {value}});
}

void Archive::flag(std::string_view key, bool& value) { field(key, value); }
void Archive::text(std::string_view key, std::string& value) { field(key, value); }

void Archive::number(std::string_view key, double& value) {
  field(key, value);
  if (!std::isfinite(value)) refuse(fmt::format("field {} is not finite", full(key)));
}

void Archive::whole(std::string_view key, std::int64_t& value, Bounds legal) {
  field(key, value, json::WholeRange{legal.least, legal.most});
  if (value < legal.least || value > legal.most)
    refuse(fmt::format("field {} is {}; it must be a whole number in {}..{}", full(key), value,
                       legal.least, legal.most));
}

void Archive::check(const TensorInfo& tensor, ElementType type,
                    const std::vector<std::int64_t>& legal) const {
  bool fits = tensor.type == type && tensor.shape.size() == legal.size();
  for (std::size_t i = 0; fits && i < legal.size(); ++i)
    fits = legal[i] == kAnyCount || legal[i] == tensor.shape[i];
  if (!fits)
    refuse(fmt::format("list {} has the type {} and the shape {}; it must have {} and {}",
                       tensor.name, to_string(tensor.type), shape_text(tensor.shape),
                       to_string(type), shape_text(legal)));
}

const TensorInfo& Archive::tensor(std::string_view name, ElementType type,
                                  const std::vector<std::int64_t>& legal) {
  const auto found = stored_.find(full(name));
  if (found == stored_.end()) refuse(fmt::format("list {} is missing", full(name)));
  unasked_.erase(found->first);
  check(found->second, type, legal);
  return found->second;
}

// Refuses numbers that are not finite; `first` is the index of the first one in the list.
template <class T>
void Archive::check_finite(std::string_view list, std::int64_t first,
                           std::span<const T> numbers) const {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  if constexpr (!std::is_integral_v<T>)
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (!std::isfinite(Real(numbers[i])))
        refuse(fmt::format("number {} of list {} is not finite", first + std::int64_t(i), list));
}

// Appends numbers of a list, which are inside it, piece by piece, and checks them.
template <class T>
void Archive::append(const TensorInfo& tensor, Range part, std::vector<T>& to) const {
  constexpr auto kSize = std::int64_t(sizeof(T));
  const auto before = std::ssize(to);
  to.resize(std::size_t(before + part.size()));
  auto* const numbers = reinterpret_cast<char*>(to.data() + before);
  std::string buffer;
  for (std::int64_t done = 0; done < part.size() * kSize;) {
    const std::string_view piece =
        file_->piece(data_begin_ + tensor.begin + part.begin * kSize + done,
                     std::min(kPiece, part.size() * kSize - done), buffer);
    if (piece.empty()) refuse(fmt::format("the file ends in list {}", tensor.name));
    std::memcpy(numbers + done, piece.data(), piece.size());
    done += std::ssize(piece);
  }
  check_finite(tensor.name, part.begin, std::span<const T>(to).subspan(std::size_t(before)));
}

template <class T>
void Archive::list(std::string_view name, std::vector<T>& numbers, const Sides& shape) {
  if (is_read()) {
    const TensorInfo& found = tensor(name, element_type_of<T>(), shape);
    numbers.clear();
    return append(found, {0, (found.end - found.begin) / std::int64_t(sizeof(T))}, numbers);
  }
  const std::string own_name = full(name);
  Sides own{std::ssize(numbers)};
  if (shape.size() == 2) {
    const std::int64_t columns = shape[1];
    if (columns < 1 || own[0] % columns != 0)
      refuse(fmt::format("list {} has {} numbers; it must have the shape {}", own_name, own[0],
                         shape_text(shape)));
    own = {own[0] / columns, columns};
  }
  check({own_name, element_type_of<T>(), own}, element_type_of<T>(), shape);
  check_finite(own_name, 0, std::span<const T>(numbers));
  tensors_.push_back(make_tensor(own_name, numbers, own));
}

template <class T>
void Archive::append_part(std::string_view name, Range part, std::int64_t count,
                          std::vector<T>& numbers) {
  const TensorInfo& found = tensor(name, element_type_of<T>(), {count});
  if (part.begin < 0 || part.end < part.begin || part.end > count)
    refuse(fmt::format("list {} has no numbers {} to {}", found.name, part.begin, part.end));
  append(found, part, numbers);
}

template void Archive::list(std::string_view, std::vector<float>&, const Sides&);
template void Archive::list(std::string_view, std::vector<double>&, const Sides&);
template void Archive::list(std::string_view, std::vector<Half>&, const Sides&);
template void Archive::list(std::string_view, std::vector<BFloat16>&, const Sides&);
template void Archive::list(std::string_view, std::vector<std::int32_t>&, const Sides&);
template void Archive::list(std::string_view, std::vector<std::int64_t>&, const Sides&);
template void Archive::list(std::string_view, std::vector<std::uint8_t>&, const Sides&);
template void Archive::list(std::string_view, std::vector<std::uint16_t>&, const Sides&);
template void Archive::list(std::string_view, std::vector<std::uint32_t>&, const Sides&);
template void Archive::append_part(std::string_view, Range, std::int64_t, std::vector<float>&);
template void Archive::append_part(std::string_view, Range, std::int64_t,
                                   std::vector<std::int32_t>&);
template void Archive::append_part(std::string_view, Range, std::int64_t,
                                   std::vector<std::int64_t>&);

void Archive::within(std::string_view name, const std::function<void()>& describe_it) {
  const std::size_t before = prefix_.size();
  prefix_ += std::string(name) + '.';
  describe_it();
  prefix_.resize(before);
}

void Archive::finish() const {
  if (!fields_.empty())
    refuse(fmt::format("field {} is not known", internal::quoted(fields_.begin()->first)));
  if (!unasked_.empty())
    refuse(fmt::format("list {} is not known", internal::quoted(*unasked_.begin())));
}

std::string Archive::bytes() {
  std::string file = write_safetensors(
      tensors_, {{std::string(internal::kVersionKey), std::string(internal::kVersion)},
                 {std::string(internal::kChecksumKey), std::string(internal::kNoDigits)},
                 {"kind", kind_},
                 {"head", json::Value(head_).dump()}});
  checksum_ = internal::seal_archive(file);
  return file;
}

}  // namespace tessera::io
