// SPDX-License-Identifier: Apache-2.0
// `filter`: correlation with a window of weights, the operator's second input. A block keeps the part of a plane that
// its windows cover as float32 in shared memory, and a thread computes sums down a column of its tile.
#pragma once
#include "device/own_correlate.cuh"

namespace stoker::own {

// Row of the part of a plane that a block reads: the word with the first value that the tile needs, and the bits before
// that value. All units of four values begin as many bits after a word.
struct alignas(16) FilterLine {
  const uint8_t* words;
  uint32_t shift;
  uint32_t inside;  // 0 beyond a constant border
};

// Four contiguous values of element type E, loaded by accesses of 32 bits wherever they begin.
template <class E>
class FourValues {
  using Memory = typename E::Memory;
  static constexpr int kSize = sizeof(Memory);
  static constexpr bool kShort = kSize < 4;

 public:
  // Maximum number of values before the four, and after them, that the accesses include.
  static constexpr int32_t kBefore = kShort ? 4 / kSize - 1 : 0, kAfter = kShort ? 4 / kSize : 0;

  void load(const FilterLine& line, int64_t offset) {
    const auto* const from = reinterpret_cast<const uint32_t*>(line.words + offset);
    STOKER_UNROLL for (int i = 0; i < kLoaded; ++i) words_[i] = from[i];
    shift_ = line.shift;
  }
  void put(float* to) const {
    Floats floats;
    if constexpr (!kShort) {
      STOKER_UNROLL for (int i = 0; i < 4; ++i) std::memcpy(&floats.x[i], &words_[i], sizeof(float));
    } else {
      STOKER_UNROLL for (int i = 0; i < 4; ++i) {
        const int w = i * kSize / 4, place = i % (4 / kSize);
        floats.x[i] = value(gpu::funnel_right(words_[w + 1], words_[w], shift_), place);
      }
    }
    *reinterpret_cast<Floats*>(to) = floats;
  }
  static void put_same(float* to, float value) { *reinterpret_cast<Floats*>(to) = {{value, value, value, value}}; }

 private:
  struct alignas(16) Floats {
    float x[4];
  };
  static constexpr int kLoaded = kShort ? kSize + 1 : 4;

  // Value `place` of a word.
  static float value(uint32_t word, int place) {
    if constexpr (std::is_same_v<E, F16>) {
      return op::half_to_float(static_cast<uint16_t>(word >> (16 * place)));
    } else {
      // The integer, without its sign, becomes the lowest bits of 2^23 as a float: a conversion takes longer.
      constexpr bool kSigned = static_cast<Memory>(-1) < static_cast<Memory>(0);
      constexpr uint32_t kSign = kSize == 1 ? 0x80808080u : 0x80008000u;
      constexpr float kPower = 8388608.0f, kOffset = kSigned ? (kSize == 1 ? 128.0f : 32768.0f) : 0.0f;
      const auto at = static_cast<uint32_t>(place);
      const uint32_t selector = kSize == 1 ? 0x7440u + at : 0x7410u + 0x22u * at;
      const uint32_t bits = gpu::choose_bytes(kSigned ? word ^ kSign : word, 0x4B000000u, selector);
      float x;
      std::memcpy(&x, &bits, sizeof x);
      return x - (kPower + kOffset);
    }
  }

  uint32_t words_[kLoaded], shift_;
};

constexpr int32_t kKnownStep =
    4;  // values per pixel of a window known to the compiler, at most; also in ops/image/filter.py

// Work of a block. One thread computes it, because it takes hundreds of instructions.
struct FilterWork {
  Plane from, to;
  Window window;
  int64_t plane, y, v;           // of the tile
  int64_t begin;                 // value of its first column, relative to its rows; may be negative
  int32_t rows, lines, columns;  // of the tile; those of them that the output has
  int32_t high, wide;            // of the part of the plane
  int32_t step, pitch;           // values per pixel, and from a row to the next one in shared memory
  int32_t units, past_units;     // range of units of four columns that are loaded by words
  int32_t lines_floats, weights_floats;
  bool complete;  // no row lies beyond a constant border
  bool skips;     // weights of zero do not change a sum
};

inline Window window_of(const Row& row) {
  const Port& weights = row.port(1);
  return {reinterpret_cast<const uint8_t*>(weights.data),
          weights.shape[0],
          weights.shape[1],
          weights.stride[0],
          weights.stride[1],
          static_cast<int64_t>(row.number(0)),
          static_cast<int64_t>(row.number(1)),
          static_cast<Border>(static_cast<int>(row.number(7))),
          static_cast<float>(row.number(2))};
}

// The work is computed by calls, which have registers of their own, because one thread of a block needs it.
STOKER_CALLED void place_tile(const Row& row, uint32_t block, FilterWork& work) {
  const Image target(row, 2, 3);
  work.rows = static_cast<int32_t>(row.number(8));
  const TileOfPlane place(target, block, work.rows);
  work.to = Plane(target, place.plane);
  work.plane = place.plane;
  work.y = place.y;
  work.v = place.v;
  const int64_t lines = work.to.height - place.y, columns = work.to.values() - place.v;
  work.lines = lines < work.rows ? static_cast<int32_t>(lines) : work.rows;
  work.columns = columns < kTileWidth ? static_cast<int32_t>(columns) : kTileWidth;
}
STOKER_CALLED void find_image(const Row& row, FilterWork& work) {
  work.from = Plane(Image(row, 0, 3), work.plane);
  work.window = window_of(row);
}
template <class In, int32_t kKnownPitch>
STOKER_CALLED void find_part(FilterWork& work) {
  const auto height = static_cast<int32_t>(work.window.height), width = static_cast<int32_t>(work.window.width);
  work.high = work.lines + height - 1;
  work.step = static_cast<int32_t>(work.from.inner);
  work.wide = kTileWidth + (width - 1) * work.step;
  work.pitch = (kKnownPitch && work.step <= kKnownStep ? kKnownPitch : work.wide + 3) / 4 * 4;
  work.lines_floats = 4 * (work.rows - 1 + height);
  work.weights_floats = (height * width + 3) / 4 * 4;
  constexpr bool kFloats = std::is_same_v<In, F16> || std::is_same_v<In, F32>;
  work.skips = !kFloats && std::isfinite(work.window.fill);
  using Four = FourValues<In>;
  constexpr auto kSize = static_cast<int64_t>(sizeof(typename In::Memory));
  const Plane& from = work.from;
  const int64_t y = work.y - work.window.top;
  work.complete = work.window.border != Border::Constant || (y >= 0 && y + work.high <= from.height);
  const bool dense = from.column == kSize * from.inner && (from.inner == 1 || from.channel == kSize);
  work.begin = work.v - work.window.left * from.inner;
  const int64_t first = work.begin >= Four::kBefore ? 0 : (Four::kBefore - work.begin + 3) / 4;
  const int64_t after = from.values() - work.begin - Four::kAfter;
  const int64_t past = after < 0 ? 0 : after / 4, all = (work.wide + 3) / 4;
  const bool some = dense && first < past && first < all;
  work.units = some ? static_cast<int32_t>(first) : 0;
  work.past_units = some ? static_cast<int32_t>(past < all ? past : all) : 0;
}

// Numbers: offset of the window relative to the pixel, constant of the border, the image's axes, the border mode, and
// the rows of a tile (0: a tile with its border does not fit into shared memory). A window of kHeight by kWidth is known to
// the compiler; otherwise both are 0.
template <class Ports, int kHeight, int kWidth>
struct Filter {
  using In = typename Ports::template At<0>;
  using Out = typename Ports::template At<2>;
  using Four = FourValues<In>;

  static constexpr int64_t kSize = sizeof(typename In::Memory);
  static constexpr bool kKnown = kHeight > 0;
  static constexpr int32_t kLoadedRows = 16;  // rows of a tile of the second pass; also in ops/image/_tiles.py
  static constexpr int32_t kGroups = static_cast<int32_t>(kThreads) / kTileWidth;
  static constexpr int32_t kKnownRows = 16;  // that a thread computes at a time; divides a tile's rows / kGroups

  using Work = FilterWork;

  // Rows of the part of the plane; the weights; the values.
  static FilterLine* lines() { return gpu::dynamic_shared<FilterLine>(); }
  static float* weights(const Work& work) { return gpu::dynamic_shared<float>() + work.lines_floats; }
  static float* values(const Work& work) { return weights(work) + work.weights_floats; }

  static void find_lines(const Work& work) {
    for (auto r = static_cast<int32_t>(gpu::thread_index()); r < work.high; r += kThreads) {
      const int64_t line = position_at(work.y - work.window.top + r, work.from.height, work.window.border);
      const uint8_t* const first = work.from.data + line * work.from.row + work.begin * kSize;
      const auto before = static_cast<uint32_t>(reinterpret_cast<uint64_t>(first) % 4);
      lines()[r] = {first - before, 8 * before, line < 0 ? 0u : 1u};
    }
    const auto width = static_cast<int32_t>(work.window.width);
    const int32_t count = static_cast<int32_t>(work.window.height) * width;
    for (auto i = static_cast<int32_t>(gpu::thread_index()); i < count; i += kThreads)
      weights(work)[i] = work.window.weight(i / width, i % width);
  }

  // Read units of four columns that lie within the rows. A thread reads several rows of one unit at a time.
  template <bool kComplete>
  static void read_units(const Work& work) {
    constexpr int kTogether = 5;
    const uint32_t thread = gpu::thread_index(), count = static_cast<uint32_t>(work.past_units - work.units);
    if (count == 0) return;
    const uint32_t group = thread / count;
    const auto apart = static_cast<int32_t>(kThreads / count), high = work.high, pitch = work.pitch;
    const auto first = static_cast<int32_t>(group);
    if (first >= apart) return;
    const int32_t x = 4 * (work.units + static_cast<int32_t>(thread - group * count));
    const int64_t offset = x * kSize;
    float* to = values(work) + first * pitch + x;
    for (int32_t r = first; r < high; r += kTogether * apart) {
      Four found[kTogether];
      bool inside[kTogether];
      STOKER_UNROLL for (int k = 0; k < kTogether; ++k) {
        if (r + k * apart >= high) break;
        const FilterLine line = lines()[r + k * apart];
        inside[k] = kComplete || line.inside;
        if (inside[k]) found[k].load(line, offset);
      }
      STOKER_UNROLL for (int k = 0; k < kTogether; ++k, to += apart * pitch) {
        if (r + k * apart >= high) break;
        if (inside[k]) found[k].put(to);
        else Four::put_same(to, work.window.fill);
      }
    }
  }

  // Read the other columns: near the edges, or all of them if values are not contiguous.
  static void read_edges(const Work& work) {
    constexpr int kTogether = 4;
    constexpr auto kWarps = static_cast<int32_t>(kThreads / gpu::kWarp);
    const auto lane = static_cast<int32_t>(gpu::thread_index() % gpu::kWarp);
    const auto warp = static_cast<int32_t>(gpu::thread_index() / gpu::kWarp);
    const int32_t before = 4 * work.units < work.wide ? 4 * work.units : work.wide, past = 4 * work.past_units;
    const int32_t count = before + (past < work.wide ? work.wide - past : 0);
    for (int32_t i = lane; i < count; i += static_cast<int32_t>(gpu::kWarp)) {
      const int32_t x = i < before ? i : i - before + past;
      const int64_t value = work.v + x, pixel = quotient(value, work.from.inner);
      const int64_t at = position_at(pixel - work.window.left, work.from.width, work.window.border);
      const int64_t offset =
          at * work.from.column + (value - pixel * work.from.inner) * work.from.channel - work.begin * kSize;
      for (int32_t r0 = warp; r0 < work.high; r0 += kTogether * kWarps) {
        float found[kTogether];
        STOKER_UNROLL for (int k = 0; k < kTogether; ++k) {
          found[k] = work.window.fill;
          if (r0 + k * kWarps >= work.high) break;
          const FilterLine line = lines()[r0 + k * kWarps];
          if (at >= 0 && line.inside) found[k] = static_cast<float>(load<In>(line.words + line.shift / 8 + offset));
        }
        STOKER_UNROLL for (int k = 0; k < kTogether; ++k) {
          if (const int32_t r = r0 + k * kWarps; r < work.high) values(work)[r * work.pitch + x] = found[k];
        }
      }
    }
  }

  static constexpr int32_t kPitch = kTileWidth + kKnownStep * (kWidth - 1);

  // Sums of a known window for kKnownRows rows of a column. Each value is loaded once, and added to the sums of all
  // rows whose windows cover it, so that every sum is in the order of the weights.
  static void sum_known(const float* seen, int32_t step, const float* weights, int32_t count, uint8_t* to,
                        int64_t row) {
    float weight[kHeight * kWidth];
    STOKER_UNROLL for (int i = 0; i < kHeight * kWidth; ++i) weight[i] = weights[i];
    for (int32_t left = count; left > 0; left -= kKnownRows, seen += kKnownRows * kPitch) {
      float sums[kKnownRows];
      STOKER_UNROLL for (int r = 0; r < kKnownRows + kHeight - 1; ++r) {
        float values[kWidth];
        STOKER_UNROLL for (int j = 0; j < kWidth; ++j) values[j] = seen[r * kPitch + j * step];
        STOKER_UNROLL for (int i = kHeight - 1; i >= 0; --i) {
          const int k = r - i;
          if (k < 0 || k >= kKnownRows) continue;
          STOKER_UNROLL for (int j = 0; j < kWidth; ++j) sums[k] =
              (i + j == 0 ? 0.0f : sums[k]) + values[j] * weight[i * kWidth + j];
        }
        if (const int k = r - kHeight + 1; k >= 0) {
          if (k < left) store<Out>(to, op::cast<Out>(sums[k]));
          to += row;
          gpu::compute_here(to);
        }
      }
    }
  }

  // Sums of any window for kThreadRows rows of a column at a time.
  static void sum_any(const Work& work, const float* seen, int32_t count, uint8_t* to) {
    const auto height = static_cast<int32_t>(work.window.height), width = static_cast<int32_t>(work.window.width);
    const int32_t pitch = work.pitch, step = work.step;
    const bool skips = work.skips;
    const int64_t row = work.to.row;
    for (int32_t left = count; left > 0; left -= kThreadRows, seen += kThreadRows * pitch) {
      float sums[kThreadRows] = {};
      const float* weight = weights(work);
      for (int32_t i = 0; i < height; ++i) {
        const float* from = seen + i * pitch;
        for (int32_t j = 0; j < width; ++j, ++weight, from += step) {
          if (skips && *weight == 0) continue;
          add_products<F32>(from, pitch, *weight, sums);
        }
      }
      STOKER_UNROLL for (int k = 0; k < kThreadRows; ++k) {
        if (k < left) store<Out>(to, op::cast<Out>(sums[k]));
        to += row;
      }
    }
  }

  static void correlate(const Row& row, uint32_t block) {
    STOKER_SHARED(Work, work);
    if (gpu::thread_index() == 0) {
      place_tile(row, block, work);
      find_image(row, work);
      find_part<In, kKnown ? kPitch : 0>(work);
    }
    gpu::block_barrier();
    const auto v = static_cast<int32_t>(gpu::thread_index() % kTileWidth);
    const auto group = static_cast<int32_t>(gpu::thread_index() / kTileWidth);
    const int32_t each = work.rows / kGroups, first = group * each;
    find_lines(work);
    gpu::block_barrier();
    if (work.complete) read_units<true>(work);
    else read_units<false>(work);
    read_edges(work);
    gpu::block_barrier();
    if (v >= work.columns || first >= work.lines) return;
    const int32_t count = work.lines - first < each ? work.lines - first : each;
    uint8_t* const to = work.to.data + work.to.offset(work.v + v) + (work.y + first) * work.to.row;
    const float* const seen = values(work) + first * work.pitch + v;
    if constexpr (kKnown) {
      if (work.step <= kKnownStep) return sum_known(seen, work.step, weights(work), count, to, work.to.row);
    }
    sum_any(work, seen, count, to);
  }

  // Load every value where a window reads it, for rows whose tiles with their borders do not fit into shared memory.
  static void unstaged(const Row& row, uint32_t block) {
    const Image image(row, 0, 3), target(row, 2, 3);
    const TileOfPlane place(target, block, kLoadedRows);
    const Plane from(image, place.plane), to(target, place.plane);
    const Window window = window_of(row);
    const WindowView<In> view{from, window};
    const int64_t value = place.v + gpu::thread_index() % kTileWidth;
    if (value >= to.values()) return;
    uint8_t* const column = to.data + to.offset(value);
    for (int64_t y = place.y + gpu::thread_index() / kTileWidth; y < place.y + kLoadedRows && y < to.height;
         y += kGroups)
      store<Out>(column + y * to.row, op::cast<Out>(view.sum(y, value)));
  }
};

}  // namespace stoker::own
