// SPDX-License-Identifier: Apache-2.0
// Order statistics for the baseline's vectors (SSE2 or NEON), the choice of an instruction set, and the loops over rows.
#include "filter/order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/carver.hpp"
#include "base/forms.hpp"
#include "filter/padded_rows.hpp"
#include "shared/half.hpp"

namespace stoker::order {

namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"

#include "filter/order.ipp"

const Kernels& kernels() { return form_of_isa<Kernels, STOKER_FILL_FORMS>(); }

template <class T>
const Loops<T>& loops() {
  if constexpr (sizeof(T) == 1) return kernels().bytes;
  else if constexpr (sizeof(T) == 2) return kernels().words;
  else return kernels().longs;
}

// Relation of elements to unsigned keys of their order.
enum class Keys { Same, Signed, Floats };

bool keys_of(DType t, Keys& keys) {
  switch (t) {
    case DType::Bool:
    case DType::U8:
    case DType::U16:
    case DType::U32: keys = Keys::Same; return true;
    case DType::I8:
    case DType::I16:
    case DType::I32: keys = Keys::Signed; return true;
    case DType::F16:
    case DType::BF16:
    case DType::F32: keys = Keys::Floats; return true;
    default: return false;
  }
}

template <class T>
void to_keys(T* row, int64_t n, Keys keys) {
  constexpr auto kTop = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  if (keys == Keys::Signed)
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(row[i] ^ kTop);
  if (keys == Keys::Floats)
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(row[i] ^ (row[i] & kTop ? static_cast<T>(~T{0}) : kTop));
}

template <class T>
void from_keys(T* row, int64_t n, Keys keys) {
  constexpr auto kTop = static_cast<T>(T{1} << (8 * sizeof(T) - 1));
  if (keys == Keys::Signed)
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(row[i] ^ kTop);
  if (keys == Keys::Floats)
    for (int64_t i = 0; i < n; ++i) row[i] = static_cast<T>(row[i] ^ (row[i] & kTop ? kTop : static_cast<T>(~T{0})));
}

// Rows of keys of the source, and rows of keys for the output. The bytes of the keys of a constant border are `fill`.
template <class T>
class KeyRows {
 public:
  KeyRows(const View& src, const Window& w, Keys keys, uint8_t fill, const View& dst)
      : source_(src, w.left, w.width - 1 - w.left, w.border), dst_(dst), keys_(keys), fill_(fill) {
    count_ = dst.shape[1] * dst.shape[2];
    const auto address = reinterpret_cast<uintptr_t>(dst.data) | static_cast<uintptr_t>(dst.stride[0]);
    direct_ = keys == Keys::Same && has_dense_rows(dst) && address % sizeof(T) == 0;
  }
  int64_t values() const { return source_.values(); }  // of a row of the source
  int64_t count() const { return count_; }             // of a row of the output

  void read(int64_t y, T* to) const {
    source_.read(y, fill_, reinterpret_cast<uint8_t*>(to), [&](uint8_t* first, int64_t n) {
      if (keys_ != Keys::Same) to_keys(reinterpret_cast<T*>(first), n, keys_);
    });
  }
  // Where to compute row y, in `staged` or in place; `store` must follow.
  T* target(int64_t y, T* staged) const {
    return direct_ ? reinterpret_cast<T*>(dst_.data + y * dst_.stride[0]) : staged;
  }
  void store(int64_t y, T* staged) const {
    if (direct_) return;
    from_keys(staged, count_, keys_);
    scatter_row(reinterpret_cast<const uint8_t*>(staged), dst_, y);
  }

 private:
  PaddedRows source_;
  const View& dst_;
  Keys keys_;
  uint8_t fill_;
  int64_t count_;
  bool direct_;
};

bool fits(const View& src, const View& dst, Keys& keys) {
  return keys_of(src.dtype, keys) && src.dtype == dst.dtype && src.rank == 3 && src.has_extents_of(dst);
}

bool contains(int64_t size, int64_t before) { return size >= 1 && before >= 0 && before < size; }

// Shorten a window to twice the image's extent on either side: it contains every position that the border shows.
void shorten(int64_t& size, int64_t& before, int64_t extent) {
  const int64_t after = std::min(size - 1 - before, 2 * extent);
  before = std::min(before, 2 * extent);
  size = before + 1 + after;
}

// Extremes of each row's windows. `step` is the number of elements of a pixel; `room` are two rows of memory.
template <class T>
void across(const Loops<T>& loops, bool largest, const T* row, int64_t width, int64_t step, int64_t n, T* out,
            std::pair<T*, T*> room) {
  const auto pair = loops.pair[largest];
  if (width == 1) {
    std::copy_n(row, n, out);
    return;
  }
  if (width == 2) return pair(out, row, row + step, n);
  if (width == 3) return loops.triple[largest](out, row, row + step, row + 2 * step, n);
  // Extremes of windows of 2, 4, 8, ... pixels; two of the longest one overlap in the window.
  auto [now, next] = room;
  int64_t seen = 2;
  pair(now, row, row + step, n + (width - 2) * step);
  for (; 2 * seen < width; seen *= 2, std::swap(now, next))
    pair(next, now, now + seen * step, n + (width - 2 * seen) * step);
  pair(out, now, now + (width - seen) * step, n);
}

template <class T>
void extreme_of(const View& src, const Window& window, bool largest, Keys keys, const View& dst, Scratch& scratch) {
  Window w = window;
  shorten(w.height, w.top, src.shape[0]);
  shorten(w.width, w.left, src.shape[1]);
  const Loops<T>& loop = loops<T>();
  const KeyRows<T> rows(src, w, keys, largest ? 0 : 255, dst);
  const int64_t channels = src.shape[2], n = rows.count(), high = w.height, last = dst.shape[0];
  constexpr int64_t kMore = kSlack / static_cast<int64_t>(sizeof(T));
  const auto wide = static_cast<size_t>(rows.values() + kMore), narrow = static_cast<size_t>(n + kMore);
  // Up to three rows of the window are combined directly. For more, two blocks of rows are kept.
  const bool blocks = high > 3;
  const auto kept = static_cast<size_t>(blocks ? 2 * high : high);
  T *padded = nullptr, *kept_rows = nullptr, *sum = nullptr, *staged = nullptr;
  std::pair<T*, T*> room;
  const auto carve = [&](Carver c) {
    padded = c.take<T>(wide);
    room = {c.take<T>(wide), nullptr};
    room.second = c.take<T>(wide);
    kept_rows = c.take<T>(narrow * kept);
    sum = c.take<T>(narrow);
    staged = c.take<T>(narrow);
    return c.used();
  };
  const size_t bytes = carve(Carver());
  carve(Carver(scratch.get(bytes)));
  const auto read = [&](int64_t y, T* to) {
    rows.read(y - w.top, padded);
    across(loop, largest, padded, w.width, channels, n, to, room);
  };
  const auto slot = [&](int64_t k) { return kept_rows + k * static_cast<int64_t>(narrow); };
  if (!blocks) {
    for (int64_t y = 0; y < high - 1; ++y) read(y, slot(y));
    for (int64_t y = 0; y < last; ++y) {
      T* const out = rows.target(y, staged);
      if (high == 1) {
        read(y, out);
      } else {
        read(y + high - 1, slot((y + high - 1) % high));
        const T *a = slot(y % high), *b = slot((y + 1) % high);
        if (high == 2) loop.pair[largest](out, a, b, n);
        else loop.triple[largest](out, a, b, slot((y + 2) % high), n);
      }
      rows.store(y, staged);
    }
    return;
  }
  // Each window is the end of one block of `high` rows and the beginning of the next one (van Herk, Gil and Werman). The
  // first block holds the extremes from each of its rows to its end, `sum` those from the next one's beginning.
  int64_t first = 0, next = high;
  for (int64_t y = 0; y < high; ++y) read(y, slot(y));
  for (int64_t y = 0; y < last; y += high, std::swap(first, next)) {
    for (int64_t k = high - 2; k >= 0; --k) {
      T* const row = slot(first + k);
      loop.pair[largest](row, row, slot(first + k + 1), n);
    }
    for (int64_t k = 0; k < high && y + k < last; ++k) {
      T* const out = rows.target(y + k, staged);
      if (k == 0) {
        std::copy_n(slot(first), n, out);
      } else {
        T* const row = slot(next + k - 1);
        read(y + high + k - 1, row);
        if (k == 1) {
          std::copy_n(row, n, sum);
          loop.pair[largest](out, sum, slot(first + 1), n);
        } else {
          loop.fold[largest](out, sum, row, slot(first + k), n);
        }
      }
      rows.store(y + k, staged);
    }
    if (y + high < last) read(y + 2 * high - 1, slot(next + high - 1));
  }
}

// Windows of fewer bytes are faster by comparing every one of them with the median's bits.
constexpr int64_t kLeastCounted = 300;

template <class T>
void median_of(const View& src, int64_t height, int64_t width, Keys keys, const View& dst, Scratch& scratch) {
  const Window w{height, width, height / 2, width / 2, Border::Clamp};
  const Loops<T>& loop = loops<T>();
  const KeyRows<T> rows(src, w, keys, 0, dst);
  const int64_t channels = src.shape[2], n = rows.count();
  constexpr int64_t kMore = kSlack / static_cast<int64_t>(sizeof(T));
  // Rows begin cache lines: half of the vectors of other rows would cross one.
  constexpr size_t kLine = 64 / sizeof(T);
  const size_t wide = (static_cast<size_t>(rows.values() + kMore) + kLine - 1) / kLine * kLine;
  const bool sorts = height == width && (height == 3 || height == 5);
  const bool counts = sizeof(T) == 1 && height * width >= kLeastCounted && height * width <= kMostCounted;
  Histogram* columns_of_bytes = nullptr;
  T *kept = nullptr, *sorted = nullptr, *staged = nullptr;
  const T** window = nullptr;
  const auto carve = [&](Carver c) {
    kept = c.take<T>(wide * static_cast<size_t>(height));
    sorted = c.take<T>(sorts ? wide * kSorted : 0);
    staged = c.take<T>(static_cast<size_t>(n + kMore));
    window = c.take<const T*>(static_cast<size_t>(height));
    columns_of_bytes = c.take<Histogram>(counts ? static_cast<size_t>(rows.values()) : 0);
    return c.used();
  };
  const size_t bytes = carve(Carver());
  carve(Carver(scratch.get(bytes)));
  const auto slot = [&](int64_t y) { return kept + y % height * static_cast<int64_t>(wide); };
  T* columns[kSorted];
  for (int k = 0; k < kSorted; ++k) columns[k] = sorted + k * static_cast<int64_t>(wide);
  // Count a row's bytes in the histograms of their columns, plane by plane, or take them out.
  const int64_t plane = rows.values() / channels;
  const auto count = [&](const T* row, int by) {
    Histogram* h = columns_of_bytes;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t x = 0; x < plane; ++x, ++h) {
        const auto value = static_cast<uint8_t>(row[x * channels + c]);
        h->fine[value] = static_cast<uint16_t>(h->fine[value] + by);
        h->coarse[value >> 4] = static_cast<uint16_t>(h->coarse[value >> 4] + by);
      }
  };
  if (counts) std::memset(columns_of_bytes, 0, static_cast<size_t>(rows.values()) * sizeof(Histogram));
  for (int64_t y = 0; y < height - 1; ++y) {
    rows.read(y - w.top, slot(y));
    if (counts) count(slot(y), 1);
  }
  for (int64_t y = 0; y < dst.shape[0]; ++y) {
    if (counts && y > 0) count(slot(y - 1), -1);
    rows.read(y + height - 1 - w.top, slot(y + height - 1));
    if (counts) count(slot(y + height - 1), 1);
    for (int64_t i = 0; i < height; ++i) window[i] = slot(y + i);
    T* const out = rows.target(y, staged);
    if (counts) {
      for (int64_t c = 0; c < channels; ++c)
        kernels().counted(reinterpret_cast<uint8_t*>(out) + c, columns_of_bytes + c * plane, height, width, channels,
                          n / channels);
    } else if (!sorts) {
      loop.window(out, window, height, width, channels, n);
    } else if (height == 3) {
      if (!loop.median3_of_rows || !loop.median3_of_rows(out, window, channels, n)) {
        loop.sort3(columns, window, rows.values());
        loop.median3(out, columns, channels, n);
      }
    } else {
      loop.sort5(columns, window, rows.values());
      loop.median5(out, columns, channels, n);
    }
    rows.store(y, staged);
  }
}

template <class F>
void with_keys(DType t, F&& f) {
  switch (size_of(t)) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    default: return f(uint32_t{});
  }
}

}  // namespace

void fill_plain(Kernels& k) { fill_kernels(k); }

bool extreme(const View& src, const Window& w, bool largest, const View& dst, Scratch& scratch) {
  Keys keys;
  if (!fits(src, dst, keys) || !contains(w.height, w.top) || !contains(w.width, w.left)) return false;
  if (dst.elements() == 0) return true;
  with_keys(src.dtype, [&](auto key) { extreme_of<decltype(key)>(src, w, largest, keys, dst, scratch); });
  return true;
}

bool median(const View& src, int64_t height, int64_t width, const View& dst, Scratch& scratch) {
  Keys keys;
  if (!fits(src, dst, keys) || height < 1 || width < 1 || height % 2 == 0 || width % 2 == 0) return false;
  if (height > (int64_t{1} << 31) / width) return false;
  if (dst.elements() == 0) return true;
  with_keys(src.dtype, [&](auto key) { median_of<decltype(key)>(src, height, width, keys, dst, scratch); });
  return true;
}

}  // namespace stoker::order
