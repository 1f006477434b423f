#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tessera/io/internal/text_source.hpp"

namespace tessera::io::internal {

// The first notes of an archive. They are in front of all others, so that they are found before the
// rest of the file is known to be sound:
//
//   byte 8    {"__metadata__":{"tessera_archive":"1","crc32":"89abcdef",...
//
// The checksum is the CRC-32 of the whole file with 0 for its own eight digits.
inline constexpr std::string_view kVersionKey = "tessera_archive", kChecksumKey = "crc32";
inline constexpr std::string_view kMark = R"({"__metadata__":{"tessera_archive":")", kVersion = "1",
                                  kBetween = R"(","crc32":")", kNoDigits = "00000000";
inline constexpr std::int64_t kMarkBegin = 8,  // after the length of the header
    kDigitsBegin = kMarkBegin + std::int64_t(kMark.size() + kVersion.size() + kBetween.size()),
                              kSealEnd = kDigitsBegin + std::int64_t(kNoDigits.size());

// Returns the checksum that an archive must have.
std::uint32_t archive_checksum(const TextSource& file);

// Writes the checksum into the bytes of an archive, which must have at least kSealEnd bytes, and
// returns it.
std::uint32_t seal_archive(std::string& bytes);

}  // namespace tessera::io::internal
