// SPDX-License-Identifier: Apache-2.0
// Decompression of the blocks of a row.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/copy_view.hpp"
#include "base/whole.hpp"
#include "container/lz4.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"

namespace stoker {

namespace {

constexpr int64_t kShown = 4;  // blocks in a message
constexpr int64_t kOutside =
    int64_t{1} << 60;  // outside of any input; the sum of several such numbers fits into 64 bits

struct Span {
  int64_t begin, end;
};

// Positions of the blocks in the input, in order.
class Spans {
 public:
  Spans(const View* offsets, const View* sizes, int64_t count, int64_t bytes)
      : offsets_(offsets), sizes_(sizes), count_(count), bytes_(bytes) {}
  Span next() {
    const int64_t i = at_++;
    const int64_t begin = offsets_ ? number(*offsets_, i) : end_;
    if (sizes_) end_ = begin + number(*sizes_, i);
    else end_ = offsets_ && i + 1 < count_ ? number(*offsets_, i + 1) : bytes_;
    return {begin, end_};
  }
  bool holds(const Span& block) const { return block.begin >= 0 && block.begin <= block.end && block.end <= bytes_; }

 private:
  static int64_t number(const View& numbers, int64_t i) {
    return saturated<int64_t>(read_element(numbers, i), -kOutside, kOutside);
  }
  const View *offsets_, *sizes_;
  int64_t count_, bytes_, at_ = 0, end_ = 0;
};

// Inputs: bytes; offsets of the blocks, if any; sizes of the blocks, if any. Output: the contents of each block, with
// an axis of blocks in front if there are offsets or sizes.
class InflateLz4 : public Kernel {
 public:
  InflateLz4(bool has_offsets, bool has_sizes) : has_offsets_(has_offsets), has_sizes_(has_sizes) {}
  Ports ports() const override {
    Ports all{.kernel = "inflate_lz4", .in = {port_of(DType::U8, 1)}, .out = {{.least_rank = has_axis() ? 2 : 1}}};
    for (int i = 0; i < has_offsets_ + has_sizes_; ++i) all.in.push_back({});
    return all;
  }
  bool fits(const Call& c) const override {
    const View *begins = offsets(c), *lengths = sizes(c);
    if (begins && lengths && begins->elements() != lengths->elements()) {
      *c.error = "expected as many `chunk_offsets` as `chunk_sizes`, got " + std::to_string(begins->elements()) +
                 " and " + std::to_string(lengths->elements());
      return false;
    }
    if (!has_axis() || c.out[0]->shape[0] == (begins ? begins : lengths)->elements()) return true;
    *c.error = "expected memory for each block";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &data = *c.in[0], &out = *c.out[0];
    const int64_t size = data.shape[0], count = has_axis() ? out.shape[0] : 1;
    const auto spans = [&] { return Spans(offsets(c), sizes(c), count, size); };
    Spans checked = spans();
    for (int64_t i = 0; i < count; ++i)
      if (!checked.holds(checked.next())) return refuse(c, outside(spans(), count, size));
    const uint8_t* bytes = data.data;
    if (!data.contiguous()) {
      uint8_t* const copy = c.work[0].get(static_cast<size_t>(size));
      copy_contiguous(data, copy);
      bytes = copy;
    }
    const int64_t bytes_of_block = count > 0 ? out.elements() / count * size_of(out.dtype) : 0;
    Spans blocks = spans();
    for (int64_t i = 0; i < count; ++i) {
      const auto [begin, end] = blocks.next();
      const ByteSpan block{bytes + begin, static_cast<size_t>(end - begin)};
      if (!decompress_lz4(block, out.data + i * bytes_of_block, static_cast<size_t>(bytes_of_block)))
        return refuse(c, "expected an LZ4 block of this size");
    }
    return Outcome::Ok;
  }

 private:
  bool has_axis() const { return has_offsets_ || has_sizes_; }
  const View* offsets(const Call& c) const { return has_offsets_ ? c.in[1] : nullptr; }
  const View* sizes(const Call& c) const { return has_sizes_ ? c.in[has_offsets_ ? 2 : 1] : nullptr; }

  static std::string outside(Spans spans, int64_t count, int64_t size) {
    std::string shown;
    for (int64_t i = 0; i < std::min(count, kShown); ++i) {
      const auto [begin, end] = spans.next();
      shown += (i > 0 ? ", (" : "(") + std::to_string(begin) + ", " + std::to_string(end) + ")";
    }
    return "expected blocks in the " + std::to_string(size) + " bytes of the input, got [" + shown + "]";
  }
  static Outcome refuse(const Call& c, std::string text) {
    *c.error = std::move(text);
    return Outcome::Error;
  }

  const bool has_offsets_, has_sizes_;
};

std::shared_ptr<Kernel> make_inflate_lz4(bool has_offsets, bool has_sizes) {
  return std::make_shared<InflateLz4>(has_offsets, has_sizes);
}

const Registered kInflateLz4{"inflate_lz4",
                             "Contents of LZ4 blocks.",
                             make_inflate_lz4,
                             {{"has_offsets", "the second input has the offsets of blocks"},
                              {"has_sizes", "the last input has the sizes of blocks"}}};

}  // namespace

}  // namespace stoker
