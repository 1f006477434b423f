// The body of plain_product and plain_product_native (plain_product.hpp), included once for each.

for (std::int64_t x = 0; x < q.rows; ++x) std::fill_n(&q(x, 0), q.cols, 0.0F);
const BlockShape block = weights.block;
for (std::int64_t row = 0; row + 1 < std::ssize(weights.row_begin); ++row)
  for (std::int64_t i = weights.row_begin[std::size_t(row)];
       i < weights.row_begin[std::size_t(row) + 1]; ++i)
    for (std::int64_t r = 0; r < block.rows; ++r)
      for (std::int64_t c = 0; c < block.cols; ++c) {
        const std::int64_t at = (i * block.rows + r) * block.cols + c;
        const float value = weights.values[std::size_t(at)];
        const float* from = &s(weights.col[std::size_t(i)] * block.cols + c, 0);
        float* to = &q(row * block.rows + r, 0);
        for (std::int64_t z = 0; z < q.cols; ++z) to[z] += value * from[z];
      }
