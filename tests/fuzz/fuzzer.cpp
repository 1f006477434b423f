// The program of libFuzzer: fuzz --target=NAME [OPTION OF LIBFUZZER]... [FOLDER OF INPUTS]...

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tessera/tests/fuzz/targets.hpp"

namespace {

const tessera::fuzz::Target* chosen = nullptr;

constexpr std::string_view kOption = "--target=";

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (!word.starts_with(kOption)) continue;
    for (const tessera::fuzz::Target& target : tessera::fuzz::targets())
      if (target.name == word.substr(kOption.size())) chosen = &target;
  }
  if (chosen != nullptr) return 0;
  std::fputs("fuzz: give --target=NAME, one of:", stderr);
  for (const tessera::fuzz::Target& target : tessera::fuzz::targets())
    std::fprintf(stderr, " %.*s", int(target.name.size()), target.name.data());
  std::fputs("\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({data, size});
  return 0;
}
