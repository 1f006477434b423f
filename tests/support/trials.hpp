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

// Counts the cases of nested lists of settings, and returns true for those that run: with a
// sanitizer every seventh, which meets every setting of lists of up to six if there are some fifty.
class Cases {
 public:
  bool next() { return !kIsSanitized || number_++ % 7 == 0; }

 private:
  int number_ = 0;
};

}  // namespace tessera::test
