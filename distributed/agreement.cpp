#include "tessera/distributed/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/base/error.hpp"
#include "tessera/distributed/lists.hpp"

namespace tessera::distributed {
namespace {

std::string text_of(const std::vector<char>& text) { return {text.begin(), text.end()}; }

// Throws for the ranks that were given another thing of this name than the first rank. Collective.
[[noreturn]] void refuse_difference(Communicator& ranks, std::string_view call, const Given& own,
                                    const std::vector<int>& others) {
  const auto texts = gather_lists(ranks, "descriptions of what ranks were given",
                                  std::vector<char>(own.text.begin(), own.text.end()));
  std::string difference;
  if (!own.text.empty())
    difference = fmt::format(": rank {} has {}, rank 0 has {}", others[0],
                             text_of(texts[std::size_t(others[0])]), text_of(texts[0]));
  throw_invalid(
      fmt::format("{}: rank{} {} {} given another {} than rank 0{}; give all ranks the same", call,
                  others.size() > 1 ? "s" : "", fmt::join(others, ", "),
                  others.size() > 1 ? "were" : "was", own.name, difference));
}

}  // namespace

// The finishing step of MurmurHash3, which every bit of a word reaches. With one product alone a
// changed sign reached two bits, which two signs in the next word took back.
void Digest::add_word(std::uint64_t word) {
  value_ ^= word;
  for (const std::uint64_t factor : {0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53}) {
    value_ ^= value_ >> 33;
    value_ *= factor;
  }
  value_ ^= value_ >> 33;
}

void Digest::add_bytes(std::span<const std::byte> bytes) {
  std::uint64_t word = 0;
  for (; bytes.size() >= sizeof(word); bytes = bytes.subspan(sizeof(word))) {
    std::memcpy(&word, bytes.data(), sizeof(word));
    add_word(word);
  }
  if (bytes.empty()) return;
  word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  add_word(word);
}

Given given_text(std::string_view name, std::string text) {
  return {name, Digest().add(std::span<const char>(text)).value(), std::move(text)};
}

Given given_problem(const Problem& problem) { return given_text("problem", to_string(problem)); }

Given given_caches(const host::HostCpu& cpu) {
  return given_text(
      "description of the caches",
      fmt::format("{}, {} and {} bytes", cpu.l1_data.value, cpu.l2.value, cpu.l3.value));
}

Given given_weights(std::span<const sparse::CheckedCsr<float>> weights) {
  Digest digest;
  std::int64_t blocks = 0;
  for (const sparse::CheckedCsr<float>& matrix : weights) {
    digest.add(matrix->rows).add(matrix->cols).add(matrix->block.rows).add(matrix->block.cols);
    digest.add(std::span<const std::int64_t>(matrix->row_begin));
    digest.add(std::span<const std::int32_t>(matrix->col));
    digest.add(std::span<const float>(matrix->values));
    blocks += matrix->blocks();
  }
  return {"matrix of weights", digest.value(),
          fmt::format("{} blocks with digest {:016x}", blocks, digest.value())};
}

void require_same(Communicator& ranks, std::string_view call, const std::vector<Given>& given) {
  if (ranks.size() == 1) return;
  std::vector<std::uint64_t> own;
  for (const Given& one : given) own.push_back(one.digest);
  const auto all = gather_lists(ranks, "digests of what ranks were given", own);
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::vector<int> others;
    for (int rank = 1; rank < ranks.size(); ++rank)
      if (all[std::size_t(rank)][i] != all[0][i]) others.push_back(rank);
    if (!others.empty()) refuse_difference(ranks, call, given[i], others);
  }
}

}  // namespace tessera::distributed
