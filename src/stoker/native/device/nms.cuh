// SPDX-License-Identifier: Apache-2.0
// Suppression of overlapping boxes on a GPU, with the results of detect/nms.cpp and detect/soft_nms.cpp.
//
// nms takes boxes by descending score. `mask` compares all pairs: bit k of word b of a box says that it suppresses box
// 64 b + k. `keep` visits the boxes in order, 64 at a time.
#pragma once
#include "shared/box_overlap.hpp"
#include "shared/device.cuh"
#include "shared/rotated_box.hpp"
#include "shared/xmath.hpp"

namespace stoker::detect {

constexpr uint32_t kWordBits = 64;

template <class T>
struct PlainBox {
  T x0, y0, x1, y1, area;
  static constexpr int kNumbers = 4;

  PlainBox() = default;
  explicit PlainBox(const T* n) : x0(n[0]), y0(n[1]), x1(n[2]), y1(n[3]), area((n[2] - n[0]) * (n[3] - n[1])) {}
};

template <class T>
T overlap_of(const PlainBox<T>& a, const PlainBox<T>& b) {
  return box_overlap(a.x0, a.y0, a.x1, a.y1, a.area, b.x0, b.y0, b.x1, b.y1, b.area);
}

struct TurnedBox : RotatedBox {
  static constexpr int kNumbers = 5;

  TurnedBox() = default;
  explicit TurnedBox(const double* n) : RotatedBox(n) {}
};

template <class Box>
struct WordOfBoxes {
  Box box[kWordBits];
  int64_t label[kWordBits];
};

// Block `block` of 64 threads, for 64 boxes and 64 later ones. `labels` may be null.
template <class Box, class T>
void mask(const T* boxes, const int64_t* labels, uint64_t count, double threshold, uint64_t* words, uint32_t block) {
  STOKER_SHARED(WordOfBoxes<Box>, later);
  const uint64_t columns = (count + kWordBits - 1) / kWordBits;
  const uint64_t own = block / columns, other = block % columns;
  if (other < own) return;
  const uint32_t thread = gpu::thread_index();
  const uint64_t i = own * kWordBits + thread, first = other * kWordBits;
  if (first + thread < count) {
    later.box[thread] = Box(boxes + (first + thread) * Box::kNumbers);
    later.label[thread] = labels ? labels[first + thread] : 0;
  }
  gpu::block_barrier();
  if (i >= count) return;
  const Box box(boxes + i * Box::kNumbers);
  const int64_t label = labels ? labels[i] : 0;
  uint64_t word = 0;
  for (uint32_t k = 0; k < kWordBits && first + k < count; ++k)
    if (first + k > i && later.label[k] == label && static_cast<double>(overlap_of(box, later.box[k])) > threshold)
      word |= uint64_t{1} << k;
  words[i * columns + other] = word;
}

struct Diagonal {
  uint64_t word[kWordBits], kept;
};

// One block. `dead` has room for a bit of each box; `kept` receives a byte for each.
inline void keep(const uint64_t* words, uint64_t count, uint64_t* dead, uint8_t* kept) {
  STOKER_SHARED(Diagonal, diagonal);
  const uint64_t columns = (count + kWordBits - 1) / kWordBits;
  const uint32_t thread = gpu::thread_index(), threads = gpu::thread_count();
  for (uint64_t b = thread; b < columns; b += threads) dead[b] = 0;
  for (uint64_t b = 0; b < columns; ++b) {
    const uint64_t i = b * kWordBits + thread;
    const bool has_box = thread < kWordBits && i < count;
    if (has_box) diagonal.word[thread] = words[i * columns + b];
    gpu::block_barrier();
    if (thread == 0) {
      uint64_t gone = dead[b], left = 0;
      for (uint32_t k = 0; k < kWordBits && b * kWordBits + k < count; ++k) {
        if (gone >> k & 1) continue;
        left |= uint64_t{1} << k;
        gone |= diagonal.word[k];
      }
      diagonal.kept = left;
    }
    gpu::block_barrier();
    const uint64_t left = diagonal.kept;
    if (has_box) kept[i] = static_cast<uint8_t>(left >> thread & 1);
    for (uint64_t w = b + 1 + thread; w < columns; w += threads) {
      uint64_t gone = dead[w];
      for (uint32_t k = 0; k < kWordBits; ++k)
        if (left >> k & 1) gone |= words[(b * kWordBits + k) * columns + w];
      dead[w] = gone;
    }
    gpu::block_barrier();
  }
}

constexpr uint32_t kSoftThreads = 256;

template <class T>
struct Best {
  T score[kSoftThreads];
  int64_t number[kSoftThreads];  // -1: none
};

// Decay of scores by overlaps.
struct Decaying {
  bool gaussian;
  double threshold, sigma, least;
};

// One block of kSoftThreads. `scores` are copied to `left`, which decays, and may be the same memory; `is_left` has a byte
// for each box. Return how many boxes are selected, at most `most`.
template <class T>
int64_t soft(const T* boxes, const T* scores, const int64_t* labels, int64_t count, const Decaying& rule, int64_t most,
             T* left, uint8_t* is_left, int64_t* order, T* decayed) {
  STOKER_SHARED(Best<T>, best);
  const int64_t thread = gpu::thread_index();
  const T least = static_cast<T>(rule.least);
  for (int64_t i = thread; i < count; i += kSoftThreads) {
    left[i] = scores[i];
    is_left[i] = scores[i] >= least;
  }
  int64_t n = 0;
  for (; n < most; ++n) {
    T score = T{0};
    int64_t number = -1;
    for (int64_t i = thread; i < count; i += kSoftThreads)
      if (is_left[i] && (number < 0 || left[i] > score)) {
        score = left[i];
        number = i;
      }
    best.score[thread] = score;
    best.number[thread] = number;
    gpu::block_barrier();
    for (int64_t distance = kSoftThreads / 2; distance > 0; distance /= 2) {
      if (thread < distance) {
        const int64_t other = best.number[thread + distance], own = best.number[thread];
        const T theirs = best.score[thread + distance], mine = best.score[thread];
        if (other >= 0 && (own < 0 || theirs > mine || (theirs == mine && other < own))) {
          best.number[thread] = other;
          best.score[thread] = theirs;
        }
      }
      gpu::block_barrier();
    }
    const int64_t winner = best.number[0];
    if (winner < 0) break;
    if (thread == 0) {
      order[n] = winner;
      decayed[n] = best.score[0];
    }
    const PlainBox<T> box(boxes + winner * 4);
    const int64_t label = labels ? labels[winner] : 0;
    for (int64_t i = thread; i < count; i += kSoftThreads) {
      if (i == winner) is_left[i] = 0;
      if (!is_left[i] || (labels && labels[i] != label)) continue;
      const T iou = overlap_of(box, PlainBox<T>(boxes + i * 4));
      if (!(iou > T{0})) continue;
      T weight = T{1};
      const auto x = static_cast<double>(iou);
      if (rule.gaussian) weight = static_cast<T>(xm::exp(-(x * x) / rule.sigma));
      else if (x > rule.threshold) weight = T{1} - iou;
      left[i] *= weight;
      if (!(left[i] >= least)) is_left[i] = 0;
    }
    gpu::block_barrier();  // the next search overwrites `best`
  }
  return n;
}

template <class T>
T* at(uint64_t address) {
  return reinterpret_cast<T*>(address);
}
inline double number_of(uint64_t bits) { return xm::detail::from_bits(bits); }

}  // namespace stoker::detect

// Kernels for boxes of type T.
#define STOKER_NMS(Box, T)                                                                                     \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(64, 1)                                                                    \
      stoker_nms_mask(uint64_t boxes, uint64_t labels, uint64_t count, uint64_t threshold, uint64_t words) {   \
    using namespace stoker::detect;                                                                            \
    mask<Box>(at<const T>(boxes), at<const int64_t>(labels), count, number_of(threshold), at<uint64_t>(words), \
              stoker::gpu::block_index());                                                                     \
  }                                                                                                            \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 1)                                                                   \
      stoker_nms_keep(uint64_t words, uint64_t count, uint64_t dead, uint64_t kept) {                          \
    using namespace stoker::detect;                                                                            \
    keep(at<const uint64_t>(words), count, at<uint64_t>(dead), at<uint8_t>(kept));                             \
  }
// `room`: memory for `count` scores, and then as many bytes.
#define STOKER_SOFT_NMS(T)                                                                                          \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, 1) stoker_soft_nms(                                                       \
      uint64_t boxes, uint64_t scores, uint64_t labels, uint64_t count, uint64_t gaussian, uint64_t threshold,      \
      uint64_t sigma, uint64_t least, uint64_t room, uint64_t order, uint64_t decayed, uint64_t chosen) {           \
    using namespace stoker::detect;                                                                                 \
    const auto boxes_given = static_cast<int64_t>(count);                                                           \
    const Decaying rule{gaussian != 0, number_of(threshold), number_of(sigma), number_of(least)};                   \
    const int64_t n =                                                                                               \
        soft<T>(at<const T>(boxes), at<const T>(scores), at<const int64_t>(labels), boxes_given, rule, boxes_given, \
                at<T>(room), at<uint8_t>(room + count * sizeof(T)), at<int64_t>(order), at<T>(decayed));            \
    if (stoker::gpu::thread_index() == 0) *at<int64_t>(chosen) = n;                                                 \
  }
