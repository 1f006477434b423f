#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/int_math.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/internal/binary.hpp"
#include "tessera/io/internal/safetensors_head.hpp"
#include "tessera/io/internal/text.hpp"
#include "tessera/json/reader.hpp"
#include "tessera/json/value.hpp"

namespace tessera::io {
namespace {

using internal::fail_at;

constexpr std::int64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestTable = 100'000'000;
constexpr int kDeepest = 3;  // object, tensor, list

const json::Names<ElementType>& type_names() {
  static const json::Names<ElementType> names = {
      {ElementType::F64, "F64"},   {ElementType::F32, "F32"}, {ElementType::F16, "F16"},
      {ElementType::BF16, "BF16"}, {ElementType::I64, "I64"}, {ElementType::I32, "I32"},
      {ElementType::I16, "I16"},   {ElementType::I8, "I8"},   {ElementType::U64, "U64"},
      {ElementType::U32, "U32"},   {ElementType::U16, "U16"}, {ElementType::U8, "U8"},
      {ElementType::Bool, "BOOL"}};
  return names;
}

std::int64_t header_length(const internal::TextSource& file, std::string_view name) {
  std::string buffer;
  const std::string_view first = file.piece(0, kLengthBytes, buffer);
  if (first.size() < std::size_t(kLengthBytes))
    fail_at(name, 0,
            fmt::format("{} bytes are fewer than the 8 bytes of the header length", first.size()));
  std::uint64_t length = 0;
  for (std::size_t i = std::size_t(kLengthBytes); i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(first[i]);
  const std::int64_t rest = file.bytes() - kLengthBytes;
  if (length > kLongestTable || length > std::uint64_t(rest))
    fail_at(name, 0,
            fmt::format("the header claims to have {} bytes; {} follow, and the limit is {}",
                        length, rest, kLongestTable));
  return std::int64_t(length);
}

// Reads the entry of a tensor. Keys that the format does not have yet are ignored.
TensorInfo read_info(const std::string& key, const json::Value& tensor, std::int64_t data_bytes,
                     const json::Place& place) {
  constexpr json::WholeRange kAnySide{0, INT64_MAX};
  TensorInfo info{key, {}, {}, 0, 0};
  std::vector<std::int64_t> offsets;
  json::ObjectReader fields(tensor, place);
  fields("dtype", info.type, type_names());
  fields("shape", info.shape, kAnySide);
  fields("data_offsets", offsets, json::WholeRange{0, data_bytes});
  if (offsets.size() != 2 || offsets[0] > offsets[1])
    json::throw_bad(place.member("data_offsets"), "other than that",
                    fmt::format("a begin and an end inside 0..{}", data_bytes));
  info.begin = offsets[0], info.end = offsets[1];
  const std::int64_t most = data_bytes / bytes_of(info.type);
  const std::int64_t bytes =
      internal::count_elements(info.shape, most, place.where, kLengthBytes) * bytes_of(info.type);
  if (bytes != info.end - info.begin)
    json::throw_bad(place, fmt::format("{} bytes by its shape and dtype", bytes),
                    fmt::format("the {} bytes of its data_offsets", info.end - info.begin));
  return info;
}

// Returns the beginning of a file: the length of the header and the header itself.
std::string with_header(std::string header) {
  header.append((8 - header.size() % 8) % 8, ' ');  // data begin at a multiple of 8 bytes
  std::string out;
  internal::append_bytes(out, std::uint64_t(header.size()));
  return out + header;
}

}  // namespace

std::string_view to_string(ElementType type) {
  for (const auto& [value, text] : type_names())
    if (value == type) return text;
  return "TEXT";
}

std::int64_t safetensors_data_begin(std::string_view bytes, std::string_view name) {
  return kLengthBytes + header_length(internal::TextInMemory(bytes), name);
}

std::vector<TensorInfo> list_safetensors(std::string_view bytes, std::string_view name) {
  return internal::read_safetensors_head(internal::TextInMemory(bytes), name).tensors;
}

namespace internal {
namespace {

// The tensors, in the order of their data, must cover all of them.
void check_cover(const SafetensorsHead& head, std::int64_t data_bytes, std::string_view name) {
  std::int64_t covered = 0;
  for (const TensorInfo& t : head.tensors) {
    if (t.begin != covered)
      fail_at(name, head.data_begin + covered,
              fmt::format("tensor {} begins at {} of the data; the tensor before it ends at {}",
                          internal::quoted(t.name), t.begin, covered));
    covered = t.end;
  }
  if (covered != data_bytes)
    fail_at(name, head.data_begin + covered,
            fmt::format("{} bytes belong to no tensor", data_bytes - covered));
}

}  // namespace

SafetensorsHead read_safetensors_head(const TextSource& file, std::string_view name) {
  const std::int64_t length = header_length(file, name);
  const std::int64_t data_bytes = file.bytes() - kLengthBytes - length;
  const std::string place = fmt::format("{}: header", name);
  std::string buffer;
  json::Value header =
      json::parse(file.piece(kLengthBytes, length, buffer), place, {.depth = kDeepest});
  if (!std::holds_alternative<json::Object>(header.data))
    json::throw_bad({place, ""}, header, "an object");
  SafetensorsHead head{.tensors = {}, .notes = {}, .data_begin = kLengthBytes + length};
  for (auto& [key, value] : std::get<json::Object>(header.data))
    if (key == "__metadata__")
      head.notes = std::move(value);
    else
      head.tensors.push_back(read_info(key, value, data_bytes, {place, internal::quoted(key)}));
  std::stable_sort(head.tensors.begin(), head.tensors.end(),
                   [](const TensorInfo& a, const TensorInfo& b) {
                     return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
                   });
  check_cover(head, data_bytes, name);
  return head;
}

}  // namespace internal

namespace {

// Throws for a tensor of whole numbers whose name says that they are a packed form of weights, as
// in checkpoints of the compressed-tensors package, or that another tensor scales: read as numbers,
// they would be other weights.
void refuse_packed(const std::vector<TensorInfo>& all, const TensorInfo& tensor,
                   std::string_view name) {
  const std::string_view own = std::string_view(tensor.name).substr(tensor.name.rfind('.') + 1);
  const bool is_real = tensor.type == ElementType::F64 || tensor.type == ElementType::F32 ||
                       tensor.type == ElementType::F16 || tensor.type == ElementType::BF16;
  if (is_real) return;
  if (const auto scale = std::ranges::find(all, tensor.name + "_scale", &TensorInfo::name);
      scale != all.end())
    throw Error(
        ErrorCode::BadInput,
        fmt::format("{}: tensor {} is whole numbers that {} scales, not the weights; read it "
                    "in Python by tessera.read_model, or save the checkpoint in floats",
                    name, internal::quoted(tensor.name), internal::quoted(scale->name)));
  if (own != "bitmask" && !own.ends_with("_packed")) return;
  throw Error(ErrorCode::BadInput,
              fmt::format("{}: tensor {} is {} of compressed weights, not the weights; decompress "
                          "the checkpoint and save it as dense tensors, or save the matrix with "
                          "scipy.sparse.save_npz",
                          name, internal::quoted(tensor.name),
                          own == "bitmask" ? "the bit mask" : "a packed form"));
}

// Returns true if the tensor is the scale of another one of the file, and so no matrix.
bool is_scale(const std::set<std::string_view>& names, std::string_view tensor) {
  constexpr std::string_view kEnd = "_scale";
  return tensor.ends_with(kEnd) && names.contains(tensor.substr(0, tensor.size() - kEnd.size()));
}

}  // namespace

Array read_safetensors(std::string_view bytes, std::string_view name, std::string_view tensor) {
  const internal::SafetensorsHead head =
      internal::read_safetensors_head(internal::TextInMemory(bytes), name);
  std::vector<const TensorInfo*> meant;
  std::set<std::string_view> all;
  for (const TensorInfo& t : head.tensors) all.insert(t.name);
  std::string names;
  for (const TensorInfo& t : head.tensors) {
    const bool is_meant =
        tensor.empty() ? t.shape.size() == 2 && !is_scale(all, t.name) : t.name == tensor;
    if (is_meant) meant.push_back(&t);
    if (names.size() < 400) names += (names.empty() ? "" : ", ") + internal::quoted(t.name);
  }
  if (meant.size() != 1)
    throw Error(
        ErrorCode::BadInput,
        fmt::format("{}: {}; name one as FILE.safetensors#TENSOR; tensors in the file: {}", name,
                    tensor.empty() ? fmt::format("{} tensors have two dimensions", meant.size())
                                   : "there is no tensor " + internal::quoted(tensor),
                    names.empty() ? "none" : names));
  const TensorInfo& t = *meant[0];
  refuse_packed(head.tensors, t, name);
  const std::int64_t at = head.data_begin + t.begin;
  const std::int64_t count = (t.end - t.begin) / bytes_of(t.type);
  return {t.type,
          t.shape,
          internal::decode_numbers(bytes.substr(std::size_t(at)), count, {t.type, false}, name, at),
          {}};
}

namespace {

std::int64_t count_of(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t side : shape) {
    if (side < 0)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("tensor {}: a side of {}; sides are 0 or more", name, side));
    count = checked_mul(count, side, "numbers of a tensor");
  }
  return count;
}

// A tensor whose bytes are not those of its shape would make a file that no reader takes.
void check_size(const NamedTensor& tensor) {
  const std::int64_t bytes =
      checked_mul(count_of(tensor.name, tensor.shape), bytes_of(tensor.type), "bytes of a tensor");
  if (bytes != std::ssize(tensor.bytes))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("tensor {}: {} bytes for a shape and type of {} bytes", tensor.name,
                            tensor.bytes.size(), bytes));
}

}  // namespace

template <class T>
NamedTensor make_tensor(std::string name, const std::vector<T>& numbers,
                        std::vector<std::int64_t> shape) {
  const std::int64_t count = count_of(name, shape);
  if (count != std::ssize(numbers))
    throw Error(ErrorCode::InvalidArgument, fmt::format("tensor {}: {} numbers for a shape of {}",
                                                        name, numbers.size(), count));
  const auto* const bytes = reinterpret_cast<const char*>(numbers.data());  // little-endian
  return {std::move(name), element_type_of<T>(), std::move(shape),
          std::string(bytes, numbers.size() * sizeof(T))};
}

template NamedTensor make_tensor(std::string, const std::vector<float>&, std::vector<std::int64_t>);
template NamedTensor make_tensor(std::string, const std::vector<double>&,
                                 std::vector<std::int64_t>);
template NamedTensor make_tensor(std::string, const std::vector<Half>&, std::vector<std::int64_t>);
template NamedTensor make_tensor(std::string, const std::vector<BFloat16>&,
                                 std::vector<std::int64_t>);
template NamedTensor make_tensor(std::string, const std::vector<std::int32_t>&,
                                 std::vector<std::int64_t>);
template NamedTensor make_tensor(std::string, const std::vector<std::int64_t>&,
                                 std::vector<std::int64_t>);
template NamedTensor make_tensor(std::string, const std::vector<std::uint8_t>&,
                                 std::vector<std::int64_t>);
template NamedTensor make_tensor(std::string, const std::vector<std::uint16_t>&,
                                 std::vector<std::int64_t>);
template NamedTensor make_tensor(std::string, const std::vector<std::uint32_t>&,
                                 std::vector<std::int64_t>);

namespace {

json::Value entry_of(ElementType type, const std::vector<std::int64_t>& shape, std::int64_t begin,
                     std::int64_t end) {
  json::List sides;
  for (const std::int64_t side : shape) sides.push_back(side);
  return {{"dtype", to_string(type)},
          {"shape", std::move(sides)},
          {"data_offsets", json::List{begin, end}}};
}

}  // namespace

std::string write_safetensors(const std::vector<NamedTensor>& tensors, const TensorNotes& notes) {
  json::Object header, texts;
  for (const auto& [key, text] : notes) texts.push_back({key, text});
  if (!notes.empty()) header.push_back({"__metadata__", std::move(texts)});
  std::set<std::string_view> names{"__metadata__"};
  std::int64_t end = 0;
  for (const NamedTensor& t : tensors) {
    check_size(t);
    if (!names.insert(t.name).second)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("the name {} of a tensor is given twice", t.name));
    header.push_back({t.name, entry_of(t.type, t.shape, end, end + std::ssize(t.bytes))});
    end += std::ssize(t.bytes);
  }
  std::string out = with_header(json::Value(std::move(header)).dump());
  out.reserve(out.size() + std::size_t(end));
  for (const NamedTensor& t : tensors) out += t.bytes;
  return out;
}

template <class T>
std::string write_safetensors(MatrixView<const T> matrix, std::string_view tensor) {
  const std::int64_t bytes = matrix.rows * matrix.cols * std::int64_t(sizeof(T));
  const json::Value header = {
      {std::string(tensor), entry_of(element_type_of<T>(), {matrix.rows, matrix.cols}, 0, bytes)}};
  std::string out = with_header(header.dump());
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t c = 0; c < matrix.cols; ++c) internal::append_bytes(out, matrix(r, c));
  return out;
}

template std::string write_safetensors(MatrixView<const float>, std::string_view);
template std::string write_safetensors(MatrixView<const double>, std::string_view);
template std::string write_safetensors(MatrixView<const Half>, std::string_view);

sparse::Csr<double> to_csr(const Array& array, std::string_view name) {
  if (array.shape.size() != 2 || array.type == ElementType::Text)
    throw Error(
        ErrorCode::BadInput,
        fmt::format(
            "{}: a matrix must have two dimensions of numbers; this array has {} dimensions", name,
            array.shape.size()));
  sparse::Csr<double> matrix;
  matrix.rows = array.shape[0], matrix.cols = array.shape[1];
  if (std::max(matrix.rows, matrix.cols) > INT32_MAX)
    throw Error(ErrorCode::BadInput, fmt::format("{}: {} x {} has a side above 2^31 - 1", name,
                                                 matrix.rows, matrix.cols));
  // Without elements nothing in the file pays for the row pointers.
  const std::int64_t most = internal::most_lines(0);
  if (array.values.empty() && std::max(matrix.rows, matrix.cols) > most)
    throw FileTooLarge(
        fmt::format("{}: {} x {} without elements; at most {} rows and columns are legal", name,
                    matrix.rows, matrix.cols, most));
  std::size_t at = 0;
  if (array.values.empty()) matrix.row_begin.assign(std::size_t(matrix.rows) + 1, 0);
  for (std::int64_t r = 0; !array.values.empty() && r < matrix.rows; ++r) {
    for (std::int64_t c = 0; c < matrix.cols; ++c, ++at)
      if (array.values[at] != 0) {
        matrix.col.push_back(std::int32_t(c));
        matrix.values.push_back(array.values[at]);
      }
    matrix.row_begin.push_back(matrix.blocks());
  }
  return matrix;
}

}  // namespace tessera::io
