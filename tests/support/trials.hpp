#pragma once

namespace tessera::test {

#ifdef TESSERA_SANITIZED
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// Returns how many of `all` random trials run: with a sanitizer an eighth. It looks for faults that
// the first trials show as well as the last ones, and a trial takes ten times as long there.
constexpr int trials(int all) { return kIsSanitized ? (all + 7) / 8 : all; }

}  // namespace tessera::test
