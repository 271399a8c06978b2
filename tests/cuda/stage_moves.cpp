// SPDX-License-Identifier: Apache-2.0
// Stages that only move elements, on emulated threads: lines at all alignments in both orders, pixels and planes,
// elements of all sizes, in allocations that end with the row. The same rows by groups of lanes, as stages compute that
// do more. Compared with one element after the other. Prints faults, and nothing without one.
#include <sanitizer/asan_interface.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#define STOKER_EMULATION "cuda_emulation.hpp"
#include "device/stage.cuh"

namespace stoker::stage {
namespace {

// `channels` of a pixel are elements of a lane; 0: every element is a lane.
template <int bytes, bool moves, int channels_>
struct Moving {
  using Interpolator = Unsampled;
  using Element =
      std::conditional_t<bytes == 1, U8, std::conditional_t<bytes == 2, U16, std::conditional_t<bytes == 4, U32, U64>>>;
  static constexpr int kInputs = 1, kShared = 0, kPorts = 2, kSampled = 1, kStored = 1;
  static constexpr bool kFlat = channels_ == 0, kDivides = false, kShort = true, kMoves = moves;
  static constexpr int kGroup = 4, kTogether = 2, kByteTable = -1;
  static constexpr int kPixelsTogether = 1, kPointsTogether = 1, kSharedTogether = 1;
  static constexpr int kWide = kFlat && bytes < 4 ? 16 / bytes : 1, kWideTogether = 1;
  static constexpr int size(int) { return bytes; }
  static constexpr int channels(int) { return kFlat ? 1 : channels_; }
  static constexpr int saturates(int) { return 0; }
  struct Numbers {
    explicit Numbers(const Row<Moving>&) {}
  };
  template <class Lane>
  static void run(const Lane& lane, const Numbers&, bool&) {
    for (int c = 0; c < channels(0); ++c) lane.template store<Element>(0, c, lane.template load<Element>(0, c));
  }
};

// An axis of a row, with its strides in elements.
struct Axis {
  int64_t extent, from, to;
};

// Memory that begins `before` bytes after a multiple of 16 and ends with the elements of the axes; what surrounds it
// must not be read. `origin` is the element at index 0.
struct Memory {
  std::vector<uint8_t> all;
  size_t first = 0, size = 0, origin = 0;

  Memory(const std::vector<Axis>& axes, int64_t Axis::* stride, int element, int before) {
    int64_t low = 0, high = 0;
    for (const Axis& a : axes) (a.*stride < 0 ? low : high) += (a.extent - 1) * (a.*stride) * element;
    size = static_cast<size_t>(high - low) + static_cast<size_t>(element);
    first = 64 + static_cast<size_t>(before);
    origin = first + static_cast<size_t>(-low);
    all.resize(first + size + 64 + 16);
    const size_t shift = -reinterpret_cast<uint64_t>(all.data()) % 16;
    first += shift, origin += shift;
  }
  // The sanitizer knows which of eight bytes are the last ones, but not which are the first ones.
  void protect() const {
    const size_t start = first - reinterpret_cast<uint64_t>(all.data() + first) % 8;
    ASAN_POISON_MEMORY_REGION(all.data(), start);
    ASAN_POISON_MEMORY_REGION(all.data() + first + size, all.size() - first - size);
  }
  void open() const { ASAN_UNPOISON_MEMORY_REGION(all.data(), all.size()); }
};

int faults = 0, checked = 0;
std::mt19937 noise(5);

// Move a row of axes from the innermost one on, and of inner elements if `inner` has an extent.
template <int bytes, bool moves, int channels>
void check(const char* title, const std::vector<Axis>& axes, Axis inner, int from_before, int to_before, int64_t part) {
  std::vector<Axis> every = axes;
  if (inner.extent) every.push_back(inner);
  Memory in(every, &Axis::from, bytes, from_before * bytes), out(every, &Axis::to, bytes, to_before * bytes);
  for (uint8_t& b : in.all) b = static_cast<uint8_t>(noise());
  for (uint8_t& b : out.all) b = static_cast<uint8_t>(noise());
  std::vector<uint8_t> want = out.all;
  std::vector<int64_t> index(every.size());
  for (bool more = true; more;) {
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < every.size(); ++d) from += index[d] * every[d].from, to += index[d] * every[d].to;
    std::memcpy(&want[out.origin + static_cast<size_t>(to * bytes)],
                &in.all[in.origin + static_cast<size_t>(from * bytes)], bytes);
    more = false;
    for (size_t d = 0; d < every.size() && !more; ++d) {
      more = ++index[d] < every[d].extent;
      if (!more) index[d] = 0;
    }
  }

  struct alignas(16) {
    Slot slot;
    Port ports[2];
  } row{};
  row.slot.axes = static_cast<int32_t>(axes.size());
  row.slot.lanes = 1;
  row.slot.inner = inner.extent && channels == 0 ? inner.extent : 1;
  row.ports[0].data = reinterpret_cast<uint64_t>(&in.all[in.origin]);
  row.ports[1].data = reinterpret_cast<uint64_t>(&out.all[out.origin]);
  row.ports[0].channel = inner.from * bytes, row.ports[1].channel = inner.to * bytes;
  for (size_t d = 0; d < axes.size(); ++d) {
    row.slot.extent[d] = axes[d].extent;
    row.slot.lanes *= axes[d].extent;
    row.ports[0].stride[d] = axes[d].from * bytes, row.ports[1].stride[d] = axes[d].to * bytes;
  }
  const int64_t lanes = part_lanes(part, row.slot.inner);
  const auto blocks = static_cast<uint32_t>((row.slot.lanes + lanes - 1) / lanes);
  using Program = Moving<bytes, moves, channels>;
  in.protect(), out.protect();
  gpu::emulation().run(
      [&] {
        run_block<Program>(reinterpret_cast<const uint8_t*>(&row), sizeof row, reinterpret_cast<const void*>(part),
                           nullptr, gpu::find_work(blocks, 0, 0));
      },
      blocks, kThreads);
  in.open(), out.open();
  ++checked;
  if (want == out.all) return;
  ++faults;
  size_t at = 0;
  while (want[at] == out.all[at]) ++at;
  std::printf("%s, %s, %d channels: elements of %d bytes, %d and %d before, extent %lld, part %lld: byte %lld\n", title,
              moves ? "moves" : "groups", channels, bytes, from_before, to_before,
              static_cast<long long>(axes[0].extent), static_cast<long long>(part),
              static_cast<long long>(at) - static_cast<long long>(out.origin));
}

// Moves of an image of `width` by `height`, in rows that have `gap` more elements in the input and output.
template <int bytes>
void check_image(int64_t width, int64_t height, int64_t from_gap, int64_t to_gap, int from_before, int to_before,
                 int64_t part) {
  const auto run = [&](const char* title, const std::vector<Axis>& axes, Axis inner) {
    check<bytes, true, 0>(title, axes, inner, from_before, to_before, part);
    check<bytes, false, 0>(title, axes, inner, from_before, to_before, part);
    if (inner.extent == 3) check<bytes, false, 3>(title, axes, inner, from_before, to_before, part);
  };
  const int64_t from = width + from_gap, to = width + to_gap, from3 = 3 * width + from_gap, to3 = 3 * width + to_gap;
  const Axis pixel{3, 1, 1};
  run("contiguous", {{width * height, 1, 1}}, {});
  run("backwards", {{width * height, -1, 1}}, {});
  run("forward lines", {{width, 1, 1}, {height, from, to}}, {});
  run("lines upside down", {{width, 1, 1}, {height, -from, to}}, {});
  run("backward lines", {{width, -1, 1}, {height, from, to}}, {});
  run("strided lines", {{width, 3, 1}, {height, 3 * from, to}}, {});
  run("transposed", {{width, height, 1}, {height, 1, to}}, {});
  run("one element", {{width * height, 0, 1}}, {});
  run("an element for each line", {{width, 0, 1}, {height, 1, to}}, {});
  run("scattered output", {{width, 1, 2}, {height, from, 2 * to}}, {});
  run("three axes", {{width, 1, 1}, {height, from, to}, {2, from * height, to * height}}, {});
  run("mirrored pixels", {{width, -3, 3}, {height, from3, to3}}, pixel);
  run("turned pixels", {{width, -3, 3}, {height, -from3, to3}}, pixel);
  run("transposed pixels", {{width, 3 * height, 3}, {height, 3, to3}}, pixel);
  run("pixels to planes", {{width, 3, 1}, {height, from3, to}}, {3, 1, to * height});
  run("mirrored pixels to planes", {{width, -3, 1}, {height, from3, to}}, {3, 1, to * height});
  run("pixels", {{width, 3, 3}, {height, from3, to3}}, pixel);
  run("planes to pixels", {{width, 1, 3}, {height, from, to3}}, {3, from * height, 1});
  run("all pixels to planes", {{width * height, 3, 1}}, {3, 1, width * height});
  run("all planes to pixels", {{width * height, 1, 3}}, {3, width * height, 1});
  run("mirrored points", {{width, -2, 2}, {height, 2 * width + from_gap, 2 * width + to_gap}}, {2, 1, 1});
  run("pixels into wider ones", {{width, 3, 5}, {height, from3, 5 * to}}, pixel);
}

template <int bytes>
void check_size() {
  for (int from = 0; from < 16 / bytes; ++from)
    check_image<bytes>(21 + from, 3, from % 3, from % 2, from, (5 * from + 3) % (16 / bytes), 4096);
  for (const int64_t width : {1, 2, 5, 16, 31, 250}) check_image<bytes>(width, 5, 0, 0, 0, 0, 4096);
  for (const int64_t width : {7, 16}) check_image<bytes>(width, 17, 0, 1, 0, 0, 4096);  // lines of a few groups
  check_image<bytes>(751, 7, 5, 0, 1, 0, 4096);
  check_image<bytes>(1003, 9, 0, 3, 0, 1, 4096);
}

}  // namespace
}  // namespace stoker::stage

int main() {
  using namespace stoker::stage;
  check_size<1>();
  check_size<2>();
  check_size<4>();
  check_size<8>();
  return faults || checked < 500;
}
