#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "tessera/base/executor.hpp"
#include "tessera/tests/arrays/ops/random_arrays.hpp"

namespace tessera::test {

// Random tests of arrays share this frame: a number of cases over all storages and types, each from
// a seed that a failure prints. The environment variable TESSERA_ARRAY_CASES asks for another
// number of cases, and TESSERA_ARRAY_SEED for another first seed.
inline std::int64_t number_from(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

// Calls body.operator()<X>(random) with the array type of a case.
template <class T, class Body>
void with_storage(std::int64_t storage, Random& random, const Body& body) {
  if (storage == 0) return body.template operator()<arrays::SlicedCsr<T>>(random);
  if (storage == 1) return body.template operator()<arrays::SlicedCsc<T>>(random);
  if (storage < 5) return body.template operator()<arrays::MappedArray<T>>(random);
  body.template operator()<arrays::CooTensor<T>>(random);
}

template <class Body>
void with_type(std::int64_t type, std::int64_t storage, Random& random, const Body& body) {
  if (type == 0) return with_storage<float>(storage, random, body);
  if (type == 1) return with_storage<double>(storage, random, body);
  if (type == 2) return with_storage<Half>(storage, random, body);
  if (type == 3) return with_storage<BFloat16>(storage, random, body);
  if (type == 4) return with_storage<std::int32_t>(storage, random, body);
  with_storage<std::int64_t>(storage, random, body);
}

template <class Body>
void for_random_cases(std::int64_t cases, const Body& body) {
  cases = number_from("TESSERA_ARRAY_CASES", cases);
  const std::int64_t first = number_from("TESSERA_ARRAY_SEED", 1);
  std::cout << "seeds " << first << " to " << first + cases - 1 << "\n";
  for (std::int64_t seed = first; seed < first + cases && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(testing::Message() << "TESSERA_ARRAY_SEED=" << seed);
    Random random{std::uint64_t(seed)};
    const std::int64_t type = random.below(6), storage = random.below(9);
    with_type(type, storage, random, body);
  }
}

inline void expect_equal(const Dense& got, const Dense& wanted, const std::string& what) {
  EXPECT_EQ(got.shape, wanted.shape) << what;
  EXPECT_EQ(got.values, wanted.values) << what;
}

inline Executor& two_threads() {
  static const std::unique_ptr<Executor> executor = make_executor(ExecutorKind::Threads, 2);
  return *executor;
}
inline Executor& one_thread() {
  static const std::unique_ptr<Executor> executor = make_executor(ExecutorKind::Threads, 1);
  return *executor;
}

}  // namespace tessera::test
