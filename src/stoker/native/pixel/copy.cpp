// SPDX-License-Identifier: Apache-2.0
#include "pixel/copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/sort_few.hpp"
#include "pixel/plan.hpp"

namespace stoker::pixel {

namespace {

// Runs of up to this many bytes are moved by code for their size.
constexpr int kSmallRun = 16;
// Runs of more bytes are moved by memcpy(), which does not write to the cache what is too large for it.
constexpr int64_t kMostRun = 1 << 20;
// Elements per side of a transposed tile: two tiles of eight-byte elements fill half of a 32 KiB L1 cache.
constexpr int64_t kTile = 32;
constexpr int kMaxInt = 1 << 30;
constexpr int64_t kCacheLine = 64;
constexpr int64_t kMostPrefetched = 8192;  // a quarter of a 32 KiB L1 cache

// One axis of a copy, with strides in bytes.
struct CopyAxis {
  int64_t extent, from, to;
};

// How a kernel moves the one or two innermost axes of a copy.
enum class Way { Runs, SmallRuns, Reversed, ReversedRuns, Deal, Weave, Tiles, Elements };

class Copy {
 public:
  Copy(const View& from, const View& to) : element_(static_cast<int>(size_of(from.dtype))), k_(kernels()) {
    from_ = from.data;
    to_ = to.data;
    for (int i = 0; i < to.rank; ++i) {
      empty_ |= to.shape[i] == 0;
      if (to.shape[i] == 1) continue;
      CopyAxis axis{to.shape[i], from.stride[i], to.stride[i]};
      if (axis.to < 0 && axis.extent > 0) {  // move forward in the output
        from_ += (axis.extent - 1) * axis.from;
        to_ += (axis.extent - 1) * axis.to;
        axis.from = -axis.from;
        axis.to = -axis.to;
      }
      axes_[count_++] = axis;
    }
  }

  void run() {
    if (empty_) return;
    merge();
    const Way way = choose();
    walk(way);
  }

 private:
  void merge() {
    sort_few(axes_, axes_ + count_, [](const CopyAxis& x, const CopyAxis& y) { return x.to > y.to; });
    int kept = 0;
    for (int i = 0; i < count_; ++i) {
      const CopyAxis& inner = axes_[i];
      if (kept > 0 && axes_[kept - 1].from == inner.from * inner.extent &&
          axes_[kept - 1].to == inner.to * inner.extent) {
        const int64_t extent = axes_[kept - 1].extent * inner.extent;
        axes_[kept - 1] = {extent, inner.from, inner.to};
      } else {
        axes_[kept++] = inner;
      }
    }
    count_ = kept;
    if (count_ == 0) axes_[count_++] = {1, element_, element_};
  }

  // Move the axis to the given place from the end.
  void put_last(int axis, int place) { std::rotate(axes_ + axis, axes_ + axis + 1, axes_ + count_ - place); }

  // Index of an axis, other than the innermost, that fits; -1 if there is none.
  template <class Fits>
  int find(Fits fits) const {
    for (int i = count_ - 2; i >= 0; --i)
      if (fits(axes_[i])) return i;
    return -1;
  }

  // Choose the kernel, move the axes that it takes to the end, and count them in `inner_`.
  Way choose() {
    const CopyAxis last = axes_[count_ - 1];
    const int64_t e = element_;
    inner_ = 1;
    if (last.to != e) return Way::Elements;
    if (last.from == e) {
      run_ = last.extent * e;
      if (run_ > kSmallRun || count_ == 1) {
        inner_ = std::min(count_, 2);
        return Way::Runs;
      }
      inner_ = 2;
      const CopyAxis& next = axes_[count_ - 2];
      return next.to == run_ && next.from == -run_ ? Way::ReversedRuns : Way::SmallRuns;
    }
    if (last.from == -e) return Way::Reversed;
    const auto channels = static_cast<int>(std::min<int64_t>(last.extent, kMaxGroup + 1));
    if (channels <= kMaxGroup && k_.weave[e][channels]) {
      const int lanes = find([&](const CopyAxis& a) { return a.from == e && a.to == channels * e; });
      if (lanes >= 0) {
        put_last(lanes, 1);
        inner_ = 2;
        return Way::Weave;
      }
    }
    const int dealt =
        find([&](const CopyAxis& a) { return a.from == e && a.extent <= kMaxGroup && last.from == a.extent * e; });
    if (dealt >= 0 && k_.deal[e][axes_[dealt].extent]) {
      put_last(dealt, 1);
      inner_ = 2;
      return Way::Deal;
    }
    const int across = find([&](const CopyAxis& a) { return std::abs(a.from) == e; });
    if (across < 0) return Way::Elements;
    put_last(across, 1);
    inner_ = 2;
    return Way::Tiles;
  }

  void walk(Way way) {
    const int outer = count_ - inner_;
    const int64_t ahead = bytes_to_prefetch(way);
    int64_t at[kMaxRank] = {};
    for (;;) {
      for (int64_t i = 0; i < ahead; i += kCacheLine) __builtin_prefetch(from_ + next_ + i);
      move(way);
      int d = outer - 1;
      for (; d >= 0; --d) {
        from_ += axes_[d].from;
        to_ += axes_[d].to;
        if (++at[d] < axes_[d].extent) break;
        from_ -= axes_[d].from * axes_[d].extent;
        to_ -= axes_[d].to * axes_[d].extent;
        at[d] = 0;
      }
      if (d < 0) return;
    }
  }

  // Return how many bytes of the next row to prefetch while one is mirrored, and set the row's offset. The processor
  // itself prefetches what follows in memory, which rows that come backward, or from a window, are not.
  int64_t bytes_to_prefetch(Way way) {
    const int outer = count_ - inner_;
    if (outer < 1 || (way != Way::ReversedRuns && way != Way::Reversed)) return 0;
    const int64_t size = way == Way::ReversedRuns ? run_ : element_, bytes = axes_[outer].extent * size;
    if (bytes > kMostPrefetched) return 0;
    next_ = axes_[outer - 1].from - (bytes - size);
    return bytes;
  }

  void move(Way way) const {
    const CopyAxis& last = axes_[count_ - 1];
    switch (way) {
      case Way::Runs: return rows();
      case Way::SmallRuns: return runs(axes_[count_ - 2]);
      case Way::ReversedRuns: return reverse(static_cast<int>(run_), axes_[count_ - 2].extent);
      case Way::Reversed: return reverse(element_, last.extent);
      case Way::Deal: return deal(axes_[count_ - 2]);
      case Way::Weave: return weave(axes_[count_ - 2]);
      case Way::Tiles: return tiles(axes_[count_ - 2]);
      case Way::Elements: return elements(last);
    }
  }

  // Runs along one axis. A row is copied in less time than memory takes to answer, so the row after the next one is
  // prefetched, unless the rows are contiguous.
  void rows() const {
    const CopyAxis axis = inner_ == 2 ? axes_[count_ - 2] : CopyAxis{1, run_, run_};
    if (k_.rows && run_ >= k_.least_row && run_ <= kMostRun) {
      const bool prefetches = axis.from != run_ && run_ <= kMostPrefetched;
      k_.rows({to_, from_, axis.extent, run_, axis.to, axis.from, 2 * axis.from, prefetches ? run_ : 0});
      return;
    }
    const uint8_t* from = from_;
    uint8_t* to = to_;
    for (int64_t i = 0; i < axis.extent; ++i, from += axis.from, to += axis.to)
      std::memcpy(to, from, static_cast<size_t>(run_));
  }

  // Move `axis.extent` runs of Size bytes.
  template <int Size>
  void sized_runs(const CopyAxis& axis) const {
    const uint8_t* from = from_;
    uint8_t* to = to_;
    for (int64_t i = 0; i < axis.extent; ++i, from += axis.from, to += axis.to) std::memcpy(to, from, Size);
  }
  void runs(const CopyAxis& axis) const {
    switch (run_) {
      case 1: return sized_runs<1>(axis);
      case 2: return sized_runs<2>(axis);
      case 3: return sized_runs<3>(axis);
      case 4: return sized_runs<4>(axis);
      case 6: return sized_runs<6>(axis);
      case 8: return sized_runs<8>(axis);
      case 12: return sized_runs<12>(axis);
      case 16: return sized_runs<16>(axis);
      default: break;
    }
    const uint8_t* from = from_;
    uint8_t* to = to_;
    for (int64_t i = 0; i < axis.extent; ++i, from += axis.from, to += axis.to)
      std::memcpy(to, from, static_cast<size_t>(run_));
  }

  void elements(const CopyAxis& axis) const {
    switch (element_) {
      case 1: return sized_runs<1>(axis);
      case 2: return sized_runs<2>(axis);
      case 4: return sized_runs<4>(axis);
      default: return sized_runs<8>(axis);
    }
  }

  // Items of `size` bytes; from_ is the last one in memory, which comes first.
  void reverse(int size, int64_t count) const {
    const uint8_t* first = from_ - (count - 1) * size;
    if (const ConvertFn f = k_.reverse[size]) {
      for (int64_t done = 0; done < count;) {
        const int n = static_cast<int>(std::min<int64_t>(count - done, kMaxInt / kSmallRun));
        f(to_ + done * size, first + (count - done - n) * size, n);
        done += n;
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(to_ + i * size, first + (count - 1 - i) * size, static_cast<size_t>(size));
  }

  void deal(const CopyAxis& channel) const {
    const CopyAxis& lanes = axes_[count_ - 1];
    for (int64_t done = 0; done < lanes.extent;) {
      const int n = static_cast<int>(std::min<int64_t>(lanes.extent - done, kMaxInt / kSmallRun));
      uint8_t* planes[kMaxGroup] = {};
      for (int64_t c = 0; c < channel.extent; ++c) planes[c] = to_ + c * channel.to + done * element_;
      k_.deal[element_][channel.extent](planes, from_ + done * lanes.from, n);
      done += n;
    }
  }

  void weave(const CopyAxis& lanes) const {
    const CopyAxis& channel = axes_[count_ - 1];
    for (int64_t done = 0; done < lanes.extent;) {
      const int n = static_cast<int>(std::min<int64_t>(lanes.extent - done, kMaxInt / kSmallRun));
      const uint8_t* planes[kMaxGroup] = {};
      for (int64_t c = 0; c < channel.extent; ++c) planes[c] = from_ + c * channel.from + done * element_;
      k_.weave[element_][channel.extent](to_ + done * lanes.to, planes, n);
      done += n;
    }
  }

  template <class T>
  void sized_tiles(const CopyAxis& across) const {
    const CopyAxis& along = axes_[count_ - 1];
    for (int64_t i0 = 0; i0 < across.extent; i0 += kTile)
      for (int64_t j0 = 0; j0 < along.extent; j0 += kTile) {
        const int64_t i1 = std::min(i0 + kTile, across.extent), j1 = std::min(j0 + kTile, along.extent);
        for (int64_t i = i0; i < i1; ++i) {
          const uint8_t* from = from_ + i * across.from + j0 * along.from;
          uint8_t* to = to_ + i * across.to + j0 * along.to;
          for (int64_t j = j0; j < j1; ++j, from += along.from, to += sizeof(T)) std::memcpy(to, from, sizeof(T));
        }
      }
  }
  void tiles(const CopyAxis& across) const {
    switch (element_) {
      case 1: return sized_tiles<uint8_t>(across);
      case 2: return sized_tiles<uint16_t>(across);
      case 4: return sized_tiles<uint32_t>(across);
      default: return sized_tiles<uint64_t>(across);
    }
  }

  int element_;
  const Kernels& k_;
  const uint8_t* from_ = nullptr;
  uint8_t* to_ = nullptr;
  CopyAxis axes_[kMaxRank];
  int count_ = 0;
  int inner_ = 1;     // axes that the kernel takes
  int64_t run_ = 0;   // bytes of a contiguous run
  int64_t next_ = 0;  // offset from `from_` of the mirrored row that is prefetched
  bool empty_ = false;
};

// Store of a channel that takes a loaded one.
struct Moved {
  Source source;
  int port, channel;

  // Return whether this is the channel `n` after `first` in both views.
  bool follows(const Moved& first, int n) const {
    return port == first.port && channel == first.channel + n && source.port == first.source.port &&
           source.channel == first.source.channel + n;
  }
};

// View of some channels of a program's view.
View channels_of(const View& view, int64_t first, int64_t count) {
  View v = view;
  const int axis = v.rank - 1;
  v.data += first * v.stride[axis];
  v.shape[axis] = count;
  return v;
}

}  // namespace

void copy(const View& from, const View& to) { Copy(from, to).run(); }

bool run_as_copies(const Program& program, const View* inputs, const View* outputs) {
  const Plan& plan = *program.plan;
  if (!plan.moves) return false;
  for (int o = 0; o < program.outputs; ++o)
    for (int i = 0; i < program.inputs; ++i)
      if (inputs[i].data == outputs[o].data) return false;
  Moved moved[kMaxPorts * kMaxChannels];
  int count = 0;
  for (const Access& a : plan.stores)
    for (int k = 0; k < a.count; ++k) moved[count++] = {plan.sources[a.source[k]], a.port, a.first + k};
  for (int i = 0, n; i < count; i += n) {
    const Moved& m = moved[i];
    n = 1;
    if (program.channels == 0) {
      copy(inputs[m.source.port], outputs[m.port]);
      continue;
    }
    while (i + n < count && moved[i + n].follows(m, n)) ++n;
    copy(channels_of(inputs[m.source.port], m.source.channel, n), channels_of(outputs[m.port], m.channel, n));
  }
  return true;
}

bool keeps_first_input(const Program& program, int64_t channels) {
  const Plan& plan = *program.plan;
  if (!plan.moves || program.outputs != 1 || program.input_dtype[0] != program.output_dtype[0]) return false;
  if (program.channels != 0 && program.channels != channels) return false;
  uint64_t stored = 0;  // bits of the channels
  for (const Access& a : plan.stores)
    for (int k = 0; k < a.count; ++k) {
      const Source& from = plan.sources[a.source[k]];
      if (from.port != 0 || (program.channels != 0 && from.channel != a.first + k)) return false;
      stored |= uint64_t{1} << (a.first + k);
    }
  return stored == (uint64_t{1} << std::max(program.channels, 1)) - 1;
}

}  // namespace stoker::pixel
