// SPDX-License-Identifier: Apache-2.0
// Streaming driver of a resampling: which source rows to resample horizontally, where to keep them, and when to emit a
// row.
#include "resample/resample.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/simd.hpp"
#include "resample/axis.hpp"
#include "resample/kernels.hpp"
#include "resample/source.hpp"
#include "resample/typed.hpp"

namespace stoker::resample {

namespace {

// Picked rows are short and not neighbours, so that the processor's own prefetching does not follow them.
constexpr int64_t kRowsAhead = 2;
constexpr int64_t kRowsForPlan = 4;  // fewer rows do not repay a plan of their bytes

template <class T>
class Stream {
  static constexpr bool kU8 = std::is_same_v<T, uint8_t>;

 public:
  Stream(const View& src, const Window& vertical, const Window& horizontal, bool vertical_first, const Sink& sink,
         const RowMaker* maker = nullptr)
      : source_(src),
        sink_(sink),
        maker_(maker),
        channels_(src.shape[2]),
        kernels_(kernels()),
        vertical_first_(vertical_first),
        writes_rows_(sink.into && !vertical_first) {
    v_.window = vertical;
    h_.window = horizontal;
    row_elements_ = horizontal.out * channels_;
    pitch_ = round_up(row_elements_ * int64_t{sizeof(T)} + kOverrun, 64);
  }

  void run(Scratch& scratch) {
    Carver measure;
    carve(measure);
    Carver carver(scratch.get(measure.used()));
    carve(carver);
    v_.find();
    h_.find();
    plan_rows();
    plan_columns();
    for (int64_t y = 0; y < v_.window.out; ++y) {
      if (vertical_first_) emit_vertical_first(y);
      else emit(y);
    }
    if (!v_.picks() && !writes_rows_) flush(v_.window.out);
  }

 private:
  void carve(Carver& carver) {
    v_.carve(carver, kU8);
    h_.carve(carver, kU8);
    const int64_t full_pitch = round_up(source_.width() * source_.pixel_bytes() + tail_bound(), 64);
    ring_pitch_ = vertical_first_ ? full_pitch : pitch_;
    ring_rows_ = std::min(v_.window.max_taps + kRows, round_up(v_.window.in, kRows));
    if (!vertical_first_ || !source_.packed()) ring_ = carver.take<uint8_t>(ring_rows_ * ring_pitch_);
    pointers_ = carver.take<const uint8_t*>(round_up(v_.window.max_taps, kGroup));
    // One row at a time: the sink's stores of one row fit the store buffer and drain while the next row is computed.
    // With eight rows per call, writing to uncached memory is 10 % slower.
    batch_rows_ = vertical_first_ ? kRows : 1;
    batch_ = carver.take<uint8_t>(batch_rows_ * pitch_);
    if (h_.picks()) {
      if (kernels_.pick) {
        picks_.base = carver.take<int32_t>(pick_blocks());
        picks_.index = carver.take<uint8_t>(pick_blocks() * kPickBlock * kMostPickLoads);
      }
      return;
    }
    staging_pitch_ = full_pitch;
    if (vertical_first_ || maker_ || !source_.packed()) staging_ = carver.take<uint8_t>(kRows * staging_pitch_);
    if (!source_.packed()) all_columns_ = carver.take<int32_t>(source_.width());
    if constexpr (kU8) {
      tail_start_ = carver.take<int32_t>(round_up(h_.window.out, kBlock));
      tail_pitch_ = round_up(tail_bound() * 2, 64);
      tail_ = carver.take<uint8_t>(kRows * tail_pitch_);
      if (kernels_.block_room) block_room_ = carver.take<uint8_t>(kernels_.block_room(h_.window.out));
    }
  }

  // Upper bound for the number of bytes that a group read can reach beyond its pixels.
  int64_t tail_bound() const { return (round_up(h_.window.max_taps, kGroup) + kGroup) * source_.pixel_bytes() + 64; }

  void plan_rows() {
    if (v_.picks()) return;
    if constexpr (kU8) {
      v_.find_packed(kernels_.packing, false);
    } else {
      v_.find_doubles();
    }
  }

  void plan_columns() {
    const Window& w = h_.window;
    direct_ = h_.picks() && w.integral && !w.mirrored && source_.packed();
    // Pillow leaves outputs whose source is beyond the last pixel blank: the last outputs in its order.
    if (h_.picks()) {
      blank_ = std::count(h_.count, h_.count + w.out, 0);
      if (kernels_.pick && source_.packed() && v_.window.out >= kRowsForPlan) plan_picks();
      return;
    }
    if (!source_.packed())
      for (int64_t x = 0; x < source_.width(); ++x) all_columns_[x] = static_cast<int32_t>(x);
    if constexpr (kU8) {
      plan_fixed();
    } else {
      h_.find_doubles();
      rebase();
    }
  }

  int64_t pick_blocks() const { return (h_.window.out * source_.pixel_bytes() + kPickBlock - 1) / kPickBlock; }

  // Plan the picked bytes of a row as blocks that are shuffled out of a few loads, unless some block has them too far
  // apart. Starts are monotone, so the first and the last pixel of a block are its outermost ones.
  void plan_picks() {
    const int64_t pixel = source_.pixel_bytes(), row = source_.width() * pixel, used = h_.window.out * pixel;
    if (row > INT32_MAX) return;
    int64_t span = 0;
    for (int64_t b = 0, at = 0; at < used; ++b, at += kPickBlock) {
      const int64_t one = h_.start[at / pixel], other = h_.start[(std::min(at + kPickBlock, used) - 1) / pixel];
      picks_.base[b] = static_cast<int32_t>(std::min(one, other) * pixel);
      span = std::max(span, (std::max(one, other) + 1) * pixel - picks_.base[b]);
    }
    const int64_t loads = (span + kPickBlock - 1) / kPickBlock, read = loads * kPickBlock;
    if (loads > kMostPickLoads || read > row) return;
    std::memset(picks_.index, 0x80, pick_blocks() * read);
    for (int64_t at = 0; at < used; ++at) {
      const int64_t b = at / kPickBlock, x = at / pixel;
      if (at % kPickBlock == 0) picks_.base[b] = std::min(picks_.base[b], static_cast<int32_t>(row - read));
      const int64_t from = h_.start[x] * pixel + (at - x * pixel) - picks_.base[b];
      picks_.index[b * read + from / kPickBlock * kPickBlock + at % kPickBlock] =
          static_cast<uint8_t>(from % kPickBlock);
    }
    picks_.blocks = pick_blocks();
    picks_.loads = static_cast<int>(loads);
  }

  // Shift the taps: rows between the passes only hold the columns that are used.
  void rebase() {
    if (!vertical_first_) return;
    for (int64_t x = 0; x < h_.window.out; ++x) h_.start[x] -= h_.first;
  }

  void plan_fixed() {
    const bool fast = kernels_.handles(channels_);
    horizontal_ = fast ? kernels_.horizontal : horizontal_plain;
    const bool blocked = fast && channels_ == 1;
    h_.find_packed(fast ? kernels_.packing : Packing::Whole, blocked);
    rebase();
    taps_ = RowTaps{h_.start, h_.packed, h_.groups, static_cast<int32_t>(channels_), blocked};
    const bool copied = vertical_first_ || maker_ || !source_.packed();  // these rows are followed by padding
    readable_ = copied ? staging_pitch_ : source_.width() * channels_;
    by_blocks_ = fast && kernels_.plan_blocks && kernels_.plan_blocks(taps_, h_.window.out, readable_, block_room_);
    if (!by_blocks_) plan_tail();
  }

  // Outputs whose whole-vector reads would go beyond the row are computed from a padded copy of the row's end.
  void plan_tail() {
    const int64_t n = h_.window.out;
    safe_begin_ = 0;
    safe_end_ = n;
    const int64_t reach = (h_.groups - 1) * kGroup * channels_ + kernels_.load_bytes(channels_);
    const int64_t limit = readable_ - reach;
    const auto safe = [&](int64_t x) { return h_.start[x] * channels_ <= limit; };
    if (h_.window.mirrored)
      while (safe_begin_ < n && !safe(safe_begin_)) ++safe_begin_;
    else
      while (safe_end_ > 0 && !safe(safe_end_ - 1)) --safe_end_;
    const int64_t from = safe_begin_ > 0 ? 0 : safe_end_, to = safe_begin_ > 0 ? safe_begin_ : n;
    if (from == to) return;
    tail_first_ = std::min(h_.start[from], h_.start[to - 1]);
    for (int64_t x = from; x < to; ++x) tail_start_[x] = h_.start[x] - tail_first_;
    tail_taps_ = taps_;
    tail_taps_.start = tail_start_;
    std::memset(tail_, 0, kRows * tail_pitch_);
  }

  // Rows are numbered in the order of their use, which a mirrored axis reverses.
  int64_t order(int64_t row) const { return v_.window.mirrored ? v_.end - 1 - row : row - v_.first; }
  int64_t row_of(int64_t q) const { return v_.window.mirrored ? v_.end - 1 - q : v_.first + q; }
  uint8_t* slot(int64_t q) { return ring_ + q % ring_rows_ * ring_pitch_; }

  // Return a row that needs no work before the vertical pass, or null.
  const uint8_t* direct_row(int64_t row) const {
    return source_.row(row) + (direct_ ? h_.start[0] : h_.first) * source_.pixel_bytes();
  }

  // Point pointers_ to the rows that the vertical filter covers.
  void gather_rows(int64_t y) {
    const int64_t a = v_.start[y], b = a + v_.count[y];
    const bool ready = direct_ || (vertical_first_ && source_.packed());
    if (!ready) make_rows(order(v_.window.mirrored ? b - 1 : a), order(v_.window.mirrored ? a : b - 1));
    if (ready) {
      const uint8_t* row = direct_row(a);
      for (int64_t r = a; r < b; ++r, row += source_.row_stride()) pointers_[r - a] = row;
      return;
    }
    // One 32-bit division per output row; after that a slot's number wraps by comparison.
    const int64_t step = v_.window.mirrored ? -1 : 1;
    int64_t at = static_cast<uint32_t>(order(a)) % static_cast<uint32_t>(ring_rows_);
    for (int64_t r = a; r < b; ++r, at += step) {
      at = at < 0 ? ring_rows_ - 1 : (at == ring_rows_ ? 0 : at);
      pointers_[r - a] = ring_ + at * ring_pitch_;
    }
  }

  void emit(int64_t y) {
    if (v_.count[y] == 0 || h_.most == 0) return emit_zero(y);
    if (v_.picks() && y + kRowsAhead < v_.window.out && source_.packed())
      source_.prefetch(v_.start[y + kRowsAhead], h_.first * source_.pixel_bytes(),
                       (h_.end - h_.first) * source_.pixel_bytes());
    gather_rows(y);
    if (v_.picks()) return deliver(y, y + 1, pointers_[0]);
    filter_vertically(y, batch_row(y), row_elements_);
  }

  void filter_vertically(int64_t y, uint8_t* out, int64_t elements) {
    if constexpr (kU8) {
      for (int64_t t = v_.count[y]; t < v_.groups * kGroup; ++t) pointers_[t] = pointers_[0];
      kernels_.vertical(pointers_, v_.packed + y * v_.groups * 4, v_.groups, out, elements);
    } else {
      typed_vertical(v_.weight + y * v_.most, v_.count[y], out, elements);
    }
  }

  // Collect vertically filtered rows until there are enough of them for one horizontal call.
  void emit_vertical_first(int64_t y) {
    uint8_t* between[kRows];
    uint8_t* out[kRows];
    const int64_t j = y % kRows, elements = (h_.end - h_.first) * channels_;
    uint8_t* row = staging_ + j * staging_pitch_;
    if (v_.count[y] == 0) {
      std::memset(row, 0, elements * sizeof(T));
    } else {
      gather_rows(y);
      filter_vertically(y, row, elements);
    }
    batch_row(y);
    if (j + 1 < kRows && y + 1 < v_.window.out) return;
    for (int64_t r = 0; r < kRows; ++r) {  // a short batch repeats its last row
      between[r] = staging_ + std::min(r, j) * staging_pitch_;
      out[r] = batch_row(y - j + std::min(r, j));
    }
    filter_horizontally(between, out, j + 1);
  }

  void emit_zero(int64_t y) {
    uint8_t* row = v_.picks() ? batch_ : batch_row(y);
    std::memset(row, 0, row_elements_ * sizeof(T));
    if (v_.picks()) deliver(y, y + 1, row);
  }

  void typed_vertical(const double* weight, int32_t count, uint8_t* out, int64_t elements) {
    const auto run = has_wide() ? vertical_wide<T> : vertical_baseline<T>;
    run(reinterpret_cast<const T* const*>(pointers_), weight, count, reinterpret_cast<T*>(out), elements);
  }

  uint8_t* batch_row(int64_t y) {
    if (writes_rows_) return sink_.into + y * sink_.into_pitch;
    if (y - batch_begin_ == batch_rows_) flush(y);
    return batch_ + (y - batch_begin_) * pitch_;
  }
  void flush(int64_t y) {
    if (y > batch_begin_) deliver(batch_begin_, y, batch_);
    batch_begin_ = y;
  }
  void deliver(int64_t y0, int64_t y1, const uint8_t* pixels) {
    if (!sink_.into) return sink_.rows(sink_.ctx, y0, y1, pixels, pitch_);
    for (int64_t y = y0; y < y1; ++y, pixels += pitch_)
      std::memcpy(sink_.into + y * sink_.into_pitch, pixels, static_cast<size_t>(row_elements_) * sizeof(T));
  }

  // Make the rows up to q_last available; rows before q_first are never needed again.
  void make_rows(int64_t q_first, int64_t q_last) {
    made_ = std::max(made_, q_first);
    while (made_ <= q_last) {
      const int64_t n = std::min<int64_t>(kRows, v_.end - v_.first - made_);
      make_batch(made_, n);
      made_ += n;
    }
  }

  void make_batch(int64_t q, int64_t n) {
    if (vertical_first_) {
      for (int64_t j = 0; j < n; ++j) copy_row(row_of(q + j), slot(q + j));
      return;
    }
    if (h_.picks()) {
      for (int64_t j = 0; j < n; ++j) pick_row(row_of(q + j), slot(q + j));
      return;
    }
    if (!maker_ && source_.packed())
      for (int64_t j = q + n; j < std::min<int64_t>(q + n + kRows, v_.end - v_.first); ++j)
        source_.prefetch(row_of(j), h_.first * source_.pixel_bytes(), (h_.end - h_.first) * source_.pixel_bytes());
    const uint8_t* src[kRows];
    uint8_t* dst[kRows];
    for (int64_t j = 0; j < kRows; ++j) {  // a short batch repeats its last row
      src[j] = j < n ? source_row(row_of(q + j), j) : src[j - 1];
      dst[j] = j < n ? slot(q + j) : dst[j - 1];
    }
    filter_horizontally(src, dst, n);
  }

  void filter_horizontally(const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t n) {
    if constexpr (kU8) {
      filter_rows(src, dst);
    } else {
      const TypedTaps taps{h_.start, h_.count, h_.weight, h_.most, h_.window.out, channels_};
      for (int64_t j = 0; j < n; ++j)
        horizontal(taps, reinterpret_cast<const T*>(src[j]), reinterpret_cast<T*>(dst[j]));
    }
  }

  void pick_row(int64_t row, uint8_t* dst) {
    const int64_t n = h_.window.out, bytes = source_.pixel_bytes();
    if (picks_.blocks) kernels_.pick(picks_, source_.row(row), dst);
    else source_.gather(row, h_.start, n, dst);
    std::memset(dst + (h_.window.mirrored ? 0 : n - blank_) * bytes, 0, blank_ * bytes);
  }

  // Copy the used columns next to each other.
  void copy_row(int64_t row, uint8_t* dst) { source_.gather(row, all_columns_ + h_.first, h_.end - h_.first, dst); }

  const uint8_t* source_row(int64_t row, int64_t j) {
    uint8_t* staged = staging_ + j * staging_pitch_;
    if (maker_) {
      maker_->row(maker_->ctx, row, staged);
      return staged;
    }
    if (source_.packed()) return source_.row(row);
    copy_row(row, staged + h_.first * source_.pixel_bytes());
    return staged;
  }

  // In ascending order, because a kernel may write a few bytes beyond its outputs.
  void filter_rows(const uint8_t* const src[kRows], uint8_t* const dst[kRows]) {
    const int64_t n = h_.window.out;
    if (by_blocks_) return kernels_.horizontal_blocks(taps_, block_room_, n, readable_, src, dst);
    if (safe_begin_ > 0) filter_tail(src, dst, 0, safe_begin_);
    if (safe_begin_ < safe_end_) horizontal_(taps_, src, dst, safe_begin_, safe_end_);
    if (safe_end_ < n) filter_tail(src, dst, safe_end_, n);
  }

  void filter_tail(const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0, int64_t x1) {
    const int64_t at = tail_first_ * channels_, bytes = readable_ - at;
    const uint8_t* copies[kRows];
    for (int r = 0; r < kRows; ++r) {
      uint8_t* copy = tail_ + r * tail_pitch_;
      std::memcpy(copy, src[r] + at, bytes);
      copies[r] = copy;
    }
    horizontal_(tail_taps_, copies, dst, x0, x1);
  }

  const Source source_;
  const Sink sink_;
  const RowMaker* const maker_;
  const int64_t channels_;
  const Kernels& kernels_;
  const bool vertical_first_;
  const bool writes_rows_;  // the vertical pass, which writes no byte beyond a row, writes to the sink's memory
  AxisTaps v_, h_;
  int64_t row_elements_ = 0, pitch_ = 0;
  bool direct_ = false;  // there is no horizontal pass: rows are read in place

  uint8_t* ring_ = nullptr;
  int64_t ring_rows_ = 0, ring_pitch_ = 0, made_ = 0;
  const uint8_t** pointers_ = nullptr;
  uint8_t* batch_ = nullptr;
  int64_t batch_rows_ = 0, batch_begin_ = 0;
  int64_t blank_ = 0;
  PickBlocks picks_;
  int32_t* all_columns_ = nullptr;
  uint8_t* staging_ = nullptr;
  int64_t staging_pitch_ = 0;

  decltype(Kernels::horizontal) horizontal_ = nullptr;
  RowTaps taps_{}, tail_taps_{};
  int32_t* tail_start_ = nullptr;
  uint8_t* tail_ = nullptr;
  uint8_t* block_room_ = nullptr;
  bool by_blocks_ = false;
  int64_t readable_ = 0;  // number of bytes that may be read from the start of a row on
  int64_t tail_pitch_ = 0, tail_first_ = 0, safe_begin_ = 0, safe_end_ = 0;
};

void copy_rows(void* ctx, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch) {
  const View& dst = *static_cast<const View*>(ctx);
  const int64_t size = size_of(dst.dtype), width = dst.shape[1], channels = dst.shape[2];
  for (int64_t y = y0; y < y1; ++y) {
    uint8_t* out = dst.data + y * dst.stride[0];
    const uint8_t* p = pixels + (y - y0) * pitch;
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < channels; ++c, p += size)
        std::memcpy(out + x * dst.stride[1] + c * dst.stride[2], p, size);
  }
}

}  // namespace

bool resample(const View& src, const Axis& vertical, const Axis& horizontal, const Sink& sink, Scratch& scratch,
              Order order) {
  Passes passes;
  if (!make_passes(src, vertical, horizontal, order, passes)) return false;
  if (passes.empty) return true;
  const Window &v = passes.vertical, &h = passes.horizontal;
  const bool vertical_first = passes.vertical_first;
  switch (src.dtype) {
    case DType::U8: Stream<uint8_t>(src, v, h, vertical_first, sink).run(scratch); return true;
    case DType::U16: Stream<uint16_t>(src, v, h, vertical_first, sink).run(scratch); return true;
    case DType::I16: Stream<int16_t>(src, v, h, vertical_first, sink).run(scratch); return true;
    case DType::I32: Stream<int32_t>(src, v, h, vertical_first, sink).run(scratch); return true;
    case DType::F32: Stream<float>(src, v, h, vertical_first, sink).run(scratch); return true;
    default: return false;
  }
}

bool resample_made(const RowMaker& maker, const View& src, const Axis& vertical, const Axis& horizontal,
                   const Sink& sink, Scratch& scratch, Order order) {
  Passes passes;
  View packed = src;
  packed.set_contiguous_strides();
  packed.data = nullptr;
  if (packed.dtype != DType::U8 || !make_passes(packed, vertical, horizontal, order, passes)) return false;
  const auto copies = [](const Window& w) { return w.filter == Filter::Nearest; };
  if (passes.vertical_first || copies(passes.vertical) || copies(passes.horizontal)) return false;
  if (!passes.empty) Stream<uint8_t>(packed, passes.vertical, passes.horizontal, false, sink, &maker).run(scratch);
  return true;
}

bool has_packed_rows(const View& v) {
  const int64_t size = size_of(v.dtype), channels = v.shape[2];
  const bool aligned = reinterpret_cast<uintptr_t>(v.data) % size == 0 && v.stride[0] % size == 0;
  return aligned && (channels == 1 || v.stride[2] == size) && (v.shape[1] == 1 || v.stride[1] == channels * size);
}

bool resample_into(const View& src, const Axis& vertical, const Axis& horizontal, const View& dst, Scratch& scratch,
                   Order order) {
  if (dst.rank != 3 || src.rank != 3 || dst.dtype != src.dtype || dst.shape[0] != vertical.out_size ||
      dst.shape[1] != horizontal.out_size || dst.shape[2] != src.shape[2])
    return false;
  if (has_packed_rows(dst)) {
    return resample(src, vertical, horizontal, Sink{nullptr, nullptr, dst.data, dst.stride[0]}, scratch, order);
  }
  View out = dst;
  return resample(src, vertical, horizontal, Sink{copy_rows, &out}, scratch, order);
}

}  // namespace stoker::resample
