// Mapped arrays are written through slices and seen through every array that shares the storage.
#include <gtest/gtest.h>

#include "tessera/arrays/mapped/mapped_array.hpp"
#include "tessera/base/error.hpp"
#include "tessera/tests/arrays/ops/differential.hpp"

namespace tessera::arrays {
namespace {

using test::Dense;
using test::expect_equal;
using test::Kind;

struct Writes {
  template <class X>
  void operator()(Random& random) const {
    using T = typename X::Value;
    auto made = test::make(random, 1 + random.below(5), Kind<MappedArray<T>>());
    const Dense values = test::random_dense(random, made.shape);
    if (random.below(2) == 0) {
      made.view.assign(test::to_array_of<T>(values), Missing::Insert);
      for (std::size_t i = 0; i < made.places.size(); ++i)
        made.truth.values[std::size_t(made.places[i])] = values.values[i];
    } else {
      const auto at = std::size_t(random.below(std::ssize(made.places)));
      made.view.put(test::index_at(made.shape, std::int64_t(at)), T(2), Missing::Insert);
      made.truth.values[std::size_t(made.places[at])] = 2;
    }
    expect_equal(test::read(made.whole), made.truth, made.whole.storage_name());
    expect_equal(test::read(made.view), made.view_truth(), "the view");
  }
};

TEST(MappedWrite, IsSeenByEveryArrayThatSharesTheStorage) { test::for_random_cases(300, Writes()); }

TEST(MappedWrite, RefusesAPlaceThatIsNotStoredAndThenWritesNothing) {
  for (const MappedKind kind : {MappedKind::Coo, MappedKind::FlatCoo, MappedKind::Csr}) {
    auto array = to_mapped(CooTensor<float>({2, 2}, {0, 0}, {3}), Mapping({2, 2}), kind);
    EXPECT_THROW(array.put({1, 1}, 5), Error);
    EXPECT_THROW(array.assign(5), Error);
    EXPECT_EQ(array.get({0, 0}), 3);
    array.put({0, 0}, 4);
    array.put({1, 1}, 0, Missing::Insert);
    EXPECT_EQ(array.get({0, 0}), 4);
    EXPECT_EQ(array.specified(), 2);  // a zero is stored like any other value
    EXPECT_THROW(array.put({2, 0}, 1), Error);
    EXPECT_THROW(array.put({0}, 1), Error);
  }
}

TEST(MappedWrite, AStridedStorageHasEveryPlace) {
  auto array =
      to_mapped(CooTensor<float>({2, 3}, {0, 0}, {3}), Mapping({2, 3}), MappedKind::Strided);
  array.select({Slice{}, Slice{{}, {}, 2}}).assign(7);
  EXPECT_EQ(array.get({1, 2}), 7);
  EXPECT_EQ(array.get({1, 1}), 0);
  EXPECT_THROW(array.assign(DenseArray<float>{{3, 2}, std::vector<float>(6)}), Error);
}

}  // namespace
}  // namespace tessera::arrays
