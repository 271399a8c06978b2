// SPDX-License-Identifier: Apache-2.0
// Decompression of the blocks of a row.
#include <algorithm>
#include <cstring>
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

Outcome refuse(const Call& c, std::string text) {
  *c.error = std::move(text);
  return Outcome::Error;
}

// Inputs: offsets of the blocks, if any; sizes of the blocks, if any. Output: begin and end of each block, within the
// input. Parameter: bytes of the input.
class BlockSpans : public Kernel {
 public:
  BlockSpans(bool has_offsets, bool has_sizes) : has_offsets_(has_offsets), has_sizes_(has_sizes) {}
  Ports ports() const override {
    Ports all{.kernel = "block_spans", .in = {}, .out = {port_of(DType::I64, 2)}, .params = 1};
    all.in.resize(static_cast<size_t>(has_offsets_ + has_sizes_));
    return all;
  }
  bool fits(const Call& c) const override {
    const View *begins = offsets(c), *lengths = sizes(c), &out = *c.out[0];
    if (begins && lengths && begins->elements() != lengths->elements()) {
      *c.error = "expected as many `chunk_offsets` as `chunk_sizes`, got " + std::to_string(begins->elements()) +
                 " and " + std::to_string(lengths->elements());
      return false;
    }
    const View* numbers = begins ? begins : lengths;
    if (out.shape[1] == 2 && out.shape[0] == (numbers ? numbers->elements() : 1)) return true;
    *c.error = "expected memory for two numbers for each block";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& out = *c.out[0];
    const int64_t count = out.shape[0], bytes = saturated<int64_t>(c.params[0], 0, kOutside);
    const auto spans = [&] { return Spans(offsets(c), sizes(c), count, bytes); };
    Spans each = spans();
    for (int64_t i = 0; i < count; ++i) {
      const Span span = each.next();
      if (!each.holds(span)) return refuse(c, outside(spans(), count, bytes));
      std::memcpy(out.data + i * static_cast<int64_t>(sizeof span), &span, sizeof span);
    }
    return Outcome::Ok;
  }

 private:
  const View* offsets(const Call& c) const { return has_offsets_ ? c.in[0] : nullptr; }
  const View* sizes(const Call& c) const { return has_sizes_ ? c.in[has_offsets_ ? 1 : 0] : nullptr; }

  static std::string outside(Spans spans, int64_t count, int64_t bytes) {
    std::string shown;
    for (int64_t i = 0; i < std::min(count, kShown); ++i) {
      const auto [begin, end] = spans.next();
      shown += (i > 0 ? ", (" : "(") + std::to_string(begin) + ", " + std::to_string(end) + ")";
    }
    return "expected blocks in the " + std::to_string(bytes) + " bytes of the input, got [" + shown + "]";
  }

  const bool has_offsets_, has_sizes_;
};

// Inputs: bytes; begin and end of each block, if there are several. Output: the contents of each block, with an axis of
// blocks in front if there are several.
class InflateLz4 : public Kernel {
 public:
  explicit InflateLz4(bool has_spans) : has_spans_(has_spans) {}
  Ports ports() const override {
    Ports all{.kernel = "inflate_lz4", .in = {port_of(DType::U8, 1)}, .out = {{.least_rank = has_spans_ ? 2 : 1}}};
    if (has_spans_) all.in.push_back(port_of(DType::I64, 2));
    return all;
  }
  bool fits(const Call& c) const override {
    if (!has_spans_ || (c.in[1]->shape[1] == 2 && c.out[0]->shape[0] == c.in[1]->shape[0])) return true;
    *c.error = "expected memory for each block";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &data = *c.in[0], &out = *c.out[0];
    const int64_t size = data.shape[0], count = has_spans_ ? out.shape[0] : 1;
    const uint8_t* bytes = data.data;
    if (!data.contiguous()) {
      uint8_t* const copy = c.work[0].get(static_cast<size_t>(size));
      copy_contiguous(data, copy);
      bytes = copy;
    }
    const int64_t bytes_of_block = count > 0 ? out.elements() / count * size_of(out.dtype) : 0;
    for (int64_t i = 0; i < count; ++i) {
      Span span{0, size};
      if (has_spans_) span = span_at(*c.in[1], i);
      if (span.begin < 0 || span.begin > span.end || span.end > size) return refuse(c, "expected blocks in the input");
      const ByteSpan block{bytes + span.begin, static_cast<size_t>(span.end - span.begin)};
      if (!decompress_lz4(block, out.data + i * bytes_of_block, static_cast<size_t>(bytes_of_block)))
        return refuse(c, "expected an LZ4 block of this size");
    }
    return Outcome::Ok;
  }

 private:
  static Span span_at(const View& spans, int64_t i) {
    Span span{};
    const uint8_t* const at = spans.data + i * spans.stride[0];
    std::memcpy(&span.begin, at, sizeof span.begin);
    std::memcpy(&span.end, at + spans.stride[1], sizeof span.end);
    return span;
  }
  const bool has_spans_;
};

std::shared_ptr<Kernel> make_block_spans(bool has_offsets, bool has_sizes) {
  return std::make_shared<BlockSpans>(has_offsets, has_sizes);
}
std::shared_ptr<Kernel> make_inflate_lz4(bool has_spans) { return std::make_shared<InflateLz4>(has_spans); }

const Registered kBlockSpans{"block_spans",
                             "Begin and end of blocks in an input, checked.",
                             make_block_spans,
                             {{"has_offsets", "the first input has the offsets of blocks"},
                              {"has_sizes", "the last input has the sizes of blocks"}}};
const Registered kInflateLz4{"inflate_lz4",
                             "Contents of LZ4 blocks.",
                             make_inflate_lz4,
                             {{"has_spans", "the second input has the begin and end of each block"}}};

}  // namespace

}  // namespace stoker
