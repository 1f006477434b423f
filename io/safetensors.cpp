#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>

#include "tessera/base/error.hpp"
#include "tessera/io/array.hpp"
#include "tessera/io/internal/binary.hpp"
#include "tessera/io/internal/text.hpp"

namespace tessera::io {
namespace {

using internal::fail_at;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestTable = 100'000'000;
constexpr int kDeepest = 4;  // object, tensor, list, number

constexpr std::pair<std::string_view, ElementType> kTypes[] = {
    {"F64", ElementType::F64},   {"F32", ElementType::F32}, {"F16", ElementType::F16},
    {"BF16", ElementType::BF16}, {"I64", ElementType::I64}, {"I32", ElementType::I32},
    {"I16", ElementType::I16},   {"I8", ElementType::I8},   {"U64", ElementType::U64},
    {"U32", ElementType::U32},   {"U16", ElementType::U16}, {"U8", ElementType::U8},
    {"BOOL", ElementType::Bool}};

std::int64_t header_length(std::string_view bytes, std::string_view name) {
  if (bytes.size() < std::size_t(kLengthBytes))
    fail_at(name, 0,
            fmt::format("{} bytes are fewer than the 8 bytes of the header length", bytes.size()));
  std::uint64_t length = 0;
  for (std::size_t i = std::size_t(kLengthBytes); i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  if (length > kLongestTable || length > bytes.size() - std::size_t(kLengthBytes))
    fail_at(name, 0,
            fmt::format("the header claims to have {} bytes; {} follow, and the limit is {}",
                        length, bytes.size() - std::size_t(kLengthBytes), kLongestTable));
  return std::int64_t(length);
}

// Parses the header and refuses duplicate names and deep nesting: nlohmann-json would keep the last
// of two members of one name, and has no limit on depth.
Json parse_header(std::string_view text, std::string_view name) {
  std::vector<std::set<std::string>> open;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest) fail_at(name, kLengthBytes, "the header is nested too deeply");
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second)
      fail_at(name, kLengthBytes,
              fmt::format("{} is given twice in the header",
                          internal::quoted(value.get<std::string>())));
    return true;
  };
  try {
    Json header = Json::parse(text, watch);
    if (!header.is_object()) fail_at(name, kLengthBytes, "the header must be a JSON object");
    return header;
  } catch (const Json::parse_error& error) {
    fail_at(name, kLengthBytes + std::int64_t(error.byte), "the header is not JSON");
  } catch (const Json::exception&) {
    fail_at(name, kLengthBytes, "the header has a number beyond the range of a double");
  }
}

std::int64_t whole(const Json& value, std::string_view name, const std::string& what) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= std::uint64_t(INT64_MAX))
    return value.get<std::int64_t>();
  fail_at(name, kLengthBytes, what + " must be whole numbers of at least 0");
}

const Json& member(const Json& tensor, const char* key, std::string_view name,
                   const std::string& quoted) {
  const auto found = tensor.is_object() ? tensor.find(key) : tensor.end();
  if (found == tensor.end())
    fail_at(name, kLengthBytes, fmt::format("tensor {} has no {}", quoted, key));
  return *found;
}

TensorInfo read_info(const std::string& key, const Json& tensor, std::int64_t data_bytes,
                     std::string_view name) {
  const std::string quoted = internal::quoted(key);
  TensorInfo info{key, {}, {}, 0, 0};
  const Json& type = member(tensor, "dtype", name, quoted);
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) {
    return type.is_string() && type.get_ref<const std::string&>() == t.first;
  });
  if (found == std::end(kTypes))
    fail_at(name, kLengthBytes,
            fmt::format("tensor {}: dtype {} is not supported", quoted,
                        internal::quoted(type.dump(-1, ' ', true))));
  info.type = found->second;
  const Json& offsets = member(tensor, "data_offsets", name, quoted);
  const Json& shape = member(tensor, "shape", name, quoted);
  if (!shape.is_array() || !offsets.is_array() || offsets.size() != 2)
    fail_at(name, kLengthBytes,
            fmt::format("tensor {}: shape must be a list, data_offsets two numbers", quoted));
  for (const Json& side : shape) info.shape.push_back(whole(side, name, "shapes"));
  info.begin = whole(offsets[0], name, "data_offsets");
  info.end = whole(offsets[1], name, "data_offsets");
  if (info.begin > info.end || info.end > data_bytes)
    fail_at(name, kLengthBytes,
            fmt::format("tensor {}: data_offsets {}..{} must be inside 0..{}", quoted, info.begin,
                        info.end, data_bytes));
  const std::int64_t most = data_bytes / bytes_of(info.type);
  const std::int64_t bytes =
      internal::count_elements(info.shape, most, name, kLengthBytes) * bytes_of(info.type);
  if (bytes != info.end - info.begin)
    fail_at(name, kLengthBytes,
            fmt::format("tensor {}: shape and dtype need {} bytes, but data_offsets span {}",
                        quoted, bytes, info.end - info.begin));
  return info;
}

}  // namespace

std::vector<TensorInfo> list_safetensors(std::string_view bytes, std::string_view name) {
  const std::int64_t length = header_length(bytes, name);
  const std::int64_t data_bytes = std::int64_t(bytes.size()) - kLengthBytes - length;
  const Json header =
      parse_header(bytes.substr(std::size_t(kLengthBytes), std::size_t(length)), name);
  std::vector<TensorInfo> tensors;
  for (const auto& [key, tensor] : header.items())
    if (key != "__metadata__") tensors.push_back(read_info(key, tensor, data_bytes, name));
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
  });
  std::int64_t covered = 0;
  for (const TensorInfo& t : tensors) {
    if (t.begin != covered)
      fail_at(name, kLengthBytes + length + covered,
              fmt::format("tensor {} begins at {} of the data; the tensor before it ends at {}",
                          internal::quoted(t.name), t.begin, covered));
    covered = t.end;
  }
  if (covered != data_bytes)
    fail_at(name, kLengthBytes + length + covered,
            fmt::format("{} bytes belong to no tensor", data_bytes - covered));
  return tensors;
}

Array read_safetensors(std::string_view bytes, std::string_view name, std::string_view tensor) {
  const std::vector<TensorInfo> tensors = list_safetensors(bytes, name);
  std::vector<const TensorInfo*> meant;
  std::string names;
  for (const TensorInfo& t : tensors) {
    if (tensor.empty() ? t.shape.size() == 2 : t.name == tensor) meant.push_back(&t);
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
  const std::int64_t at = kLengthBytes + header_length(bytes, name) + t.begin;
  const std::int64_t count = (t.end - t.begin) / bytes_of(t.type);
  return {t.type,
          t.shape,
          internal::decode_numbers(bytes.substr(std::size_t(at)), count, {t.type, false}, name, at),
          {}};
}

template <class T>
std::string write_safetensors(MatrixView<const T> matrix, std::string_view tensor) {
  const char* type = std::is_same_v<T, float> ? "F32" : std::is_same_v<T, double> ? "F64" : "F16";
  const std::int64_t bytes = matrix.rows * matrix.cols * std::int64_t(sizeof(T));
  std::string header =
      Json{{std::string(tensor),
            {{"dtype", type}, {"shape", {matrix.rows, matrix.cols}}, {"data_offsets", {0, bytes}}}}}
          .dump();
  header.append((8 - header.size() % 8) % 8, ' ');  // data begin at a multiple of 8 bytes
  std::string out;
  internal::append_bytes(out, std::uint64_t(header.size()));
  out += header;
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
    throw Error(ErrorCode::LimitExceeded,
                fmt::format("{}: {} x {} without elements; at most {} rows and columns are legal",
                            name, matrix.rows, matrix.cols, most));
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
