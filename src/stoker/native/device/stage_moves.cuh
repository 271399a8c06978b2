// SPDX-License-Identifier: Apache-2.0
// Stages that only move elements. A thread writes 16 aligned bytes of an output line, or four bytes of each of three
// planes. It reads whole aligned words, wherever the source begins, and shifts or permutes their bytes. Where such
// words lie partly outside of the row's input, elements are read one by one.
#pragma once
#include "device/stage_group.cuh"

namespace stoker::stage {

// Chunks that a thread reads before it writes the first, and blocks of a multiprocessor: as many as there are registers
// for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr int kChunksTogether = 2, kMoveBlocks = 3;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int kChunksTogether = 2, kMoveBlocks = 4;
#else
constexpr int kChunksTogether = 3, kMoveBlocks = 4;
#endif

// Read the aligned words that contain `count` words from `at` on, or return false if they lie partly outside of the
// bytes from `first` to `last`. The last one is 0 if none of its bytes is wanted.
template <int count>
inline bool read_words(const uint8_t* at, uint64_t first, uint64_t last, uint32_t (&words)[count + 1]) {
  const auto address = reinterpret_cast<uint64_t>(at);
  const bool shifted = address % 4 != 0;
  const uint64_t base = address & ~uint64_t{3};
  if (base < first || base + 4 * count + (shifted ? 4 : 0) > last) return false;
  const auto* source = reinterpret_cast<const uint32_t*>(base);
  if (address % 16 == 0) {
    const auto v = *reinterpret_cast<const Vector<4>*>(base);
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = v.word[i];
  } else if (address % 8 == 0) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const auto v = *reinterpret_cast<const Vector<2>*>(base + 4 * i);
      words[i] = v.word[0], words[i + 1] = v.word[1];
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = source[i];
  }
#pragma unroll
  for (int i = 4; i < count; ++i) words[i] = source[i];
  words[count] = shifted ? source[count] : 0;
  return true;
}

// A block's share of the pieces of all lines. Every line has the same number of pieces.
struct Pieces {
  uint32_t count;  // of lines
  // Pieces of a line, the block's first piece and their number, and how many lines and pieces of the next line are
  // between those of a thread.
  uint32_t per_line, start, pieces, further_lines, further;
};

// Lines of a row: the innermost axis of its lanes, at any place of the other axes. A block keeps them in shared memory,
// so that they take no registers.
template <class Program>
struct MoveLines : Pieces {
  static constexpr int kSize = Program::size(0);
  const uint8_t* base;  // of the row's descriptor
  uint8_t *from, *to;
  int64_t from_step, to_step;    // from line to line, in rows of two axes
  int64_t from_plane, to_plane;  // strides of the inner elements
  int64_t from_lane, to_lane;
  uint64_t first, last;  // addresses of the input's first byte and after its last one
  int32_t lanes;         // of a line
  int32_t deep;          // more than two axes
  int32_t inner;         // elements of a lane

  // Describe a row, by one thread.
  void fill(const Row<Program>& row) {
    const Slot& slot = row.slot();
    const Port &in = row.port(0), &out = row.port(1);
    base = row.base;
    from = reinterpret_cast<uint8_t*>(in.data), to = reinterpret_cast<uint8_t*>(out.data);
    deep = slot.axes > 2;
    from_step = slot.axes > 1 ? in.stride[1] : 0, to_step = slot.axes > 1 ? out.stride[1] : 0;
    from_plane = in.channel, to_plane = out.channel;
    from_lane = in.stride[0], to_lane = out.stride[0], inner = static_cast<int32_t>(slot.inner);
    lanes = static_cast<int32_t>(slot.extent[0]);
    count = static_cast<uint32_t>(slot.lanes) / static_cast<uint32_t>(slot.extent[0]);
    uint64_t low = in.data, high = in.data + kSize;
    const auto extend = [&](int64_t reach) { (reach < 0 ? low : high) += static_cast<uint64_t>(reach); };
    for (int d = 0; d < slot.axes; ++d) extend((slot.extent[d] - 1) * in.stride[d]);
    if (slot.inner > 1) extend((slot.inner - 1) * in.channel);
    first = low, last = high;
  }

  // Find the first lane of a line in the input and in the output.
  void find(uint32_t line, const uint8_t*& source, uint8_t*& target) const {
    if (!deep) {
      source = from + line * from_step, target = to + line * to_step;
      return;
    }
    const Row<Program> row{base};
    const Slot& slot = row.slot();
    source = from, target = to;
    for (int d = 1; d < slot.axes; ++d) {
      const auto extent = static_cast<uint32_t>(slot.extent[d]);
      const uint32_t above = d == slot.axes - 1 ? 0 : line / extent, index = line - above * extent;
      line = above;
      source += index * row.port(0).stride[d], target += index * row.port(1).stride[d];
    }
  }

  template <int count>
  bool read(const uint8_t* at, uint32_t (&words)[count + 1]) const {
    return read_words<count>(at, first, last, words);
  }
};

// Address of aligned words, which has room for the number of bytes by which the source's words are shifted.
struct ShiftedPlace {
  uint64_t bits;
  void set(const uint8_t* to, const uint8_t* source) {
    bits = reinterpret_cast<uint64_t>(to) | reinterpret_cast<uint64_t>(source) % 4;
  }
  uint8_t* to() const { return reinterpret_cast<uint8_t*>(bits & ~uint64_t{3}); }
  uint32_t shift() const { return static_cast<uint32_t>(bits) % 4 * 8; }
};

// Write the bytes from `begin` to `end` of words at an aligned address.
template <int count>
inline void write_part(uint8_t* to, const uint32_t (&words)[count], int begin, int end) {
  const auto write_bytes = [&](int word) {
    uint32_t bits = words[0];
#pragma unroll
    for (int i = 1; i < count; ++i) bits = word == i ? words[i] : bits;
#pragma unroll
    for (int b = 0; b < 4; ++b)
      if (4 * word + b >= begin && 4 * word + b < end) to[4 * word + b] = static_cast<uint8_t>(bits >> (8 * b));
  };
#pragma unroll
  for (int i = 0; i < count; ++i)
    if (begin <= 4 * i && end >= 4 * i + 4) reinterpret_cast<uint32_t*>(to)[i] = words[i];
  if (begin % 4) write_bytes(begin / 4);
  if (end % 4) write_bytes(end / 4);
}

// 16 aligned bytes of an output line. `at` is the byte of the line at which they begin; it is negative if they begin
// before it.
template <class Program, int unit>
struct OutputChunk {
  static constexpr int kBytes = 16;
  ShiftedPlace place;
  int at;

  static uint32_t per_line(const MoveLines<Program>& lines) {
    // Lines begin at any multiple of an element's size in their first chunk.
    return (static_cast<uint32_t>(lines.lanes) * unit + (kBytes - Program::size(0)) + kBytes - 1) / kBytes;
  }
  // Find a chunk, and return its first word in the input: `offset` bytes and the chunk's place after the line's first
  // lane, or before it.
  const uint8_t* find(const MoveLines<Program>& lines, uint32_t line, uint32_t number, int offset, bool backwards) {
    const uint8_t* from;
    uint8_t* to;
    lines.find(line, from, to);
    at = static_cast<int>(number) * kBytes - static_cast<int>(reinterpret_cast<uint64_t>(to) % kBytes);
    from += offset + (backwards ? -at : at);
    place.set(to + at, from);
    return from;
  }
  // The chunk's bytes that belong to the line.
  int begin() const { return at < 0 ? -at : 0; }
  int end(const MoveLines<Program>& lines) const {
    const int left = lines.lanes * unit - at;
    return left < kBytes ? left : kBytes;
  }
  bool is_empty(const MoveLines<Program>& lines) const { return at >= lines.lanes * unit; }
  void clear() { at = 0x7FFFFFFF; }
  // Read the words of the chunk's source, and clear the chunk if they lie partly outside of the row's input: then
  // return false.
  template <int count>
  bool read(const MoveLines<Program>& lines, const uint8_t* from, uint32_t (&words)[count + 1]) {
    if (is_empty(lines) || lines.template read<count>(from, words)) return true;
    clear();
    return false;
  }
  void write(const MoveLines<Program>& lines, const uint32_t (&words)[4]) const {
    const int before = begin(), after = end(lines);
    if (before == 0 && after == kBytes)
      *reinterpret_cast<Vector<4>*>(place.to()) = {words[0], words[1], words[2], words[3]};
    else write_part(place.to(), words, before, after);
  }
};

// A chunk of lines whose units, of `inner` adjacent elements, lie anywhere in the input.
template <class Program, int inner>
struct GatheredChunk {
  using Careful = void;
  static constexpr int kTogether = 1, kThreadsEach = 1, kSize = Program::size(0), kUnit = kSize * inner;
  using Chunk = OutputChunk<Program, kUnit>;
  static uint32_t per_line(const MoveLines<Program>& lines) { return Chunk::per_line(lines); }
  Chunk chunk;
  uint32_t words[4];

  bool read(const MoveLines<Program>& lines, uint32_t line, uint32_t number) {
    using Bits = BitsOf<kSize>;
    const uint8_t* from = chunk.find(lines, line, number, 0, false) - chunk.at;
    const int begin = chunk.begin(), end = chunk.end(lines);
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = 0;
#pragma unroll
    for (int e = 0; e < 16 / kSize; ++e) {
      if (e * kSize < begin || e * kSize >= end) continue;
      const int byte = chunk.at + e * kSize, lane = byte / kUnit;
      pack(words, e, *reinterpret_cast<const Bits*>(from + lane * lines.from_lane + (byte - lane * kUnit)));
    }
    return true;
  }
  void write(const MoveLines<Program>& lines) const {
    if (!chunk.is_empty(lines)) chunk.write(lines, words);
  }
};

// A chunk of lines whose elements follow each other in the input, in either direction.
template <class Program>
struct AdjacentChunk {
  static constexpr int kTogether = kChunksTogether, kThreadsEach = 1, kSize = Program::size(0);
  using Chunk = OutputChunk<Program, kSize>;
  using Careful = GatheredChunk<Program, 1>;
  static uint32_t per_line(const MoveLines<Program>& lines) { return Chunk::per_line(lines); }
  Chunk chunk;
  uint32_t words[5];

  bool read(const MoveLines<Program>& lines, uint32_t line, uint32_t number) {
    const bool backwards = lines.from_lane < 0;
    const uint8_t* from = chunk.find(lines, line, number, backwards ? kSize - 16 : 0, backwards);
    return chunk.template read<4>(lines, from, words);
  }
  void write(const MoveLines<Program>& lines) const {
    if (chunk.is_empty(lines)) return;
    uint32_t moved[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) moved[i] = gpu::funnel_right(words[i + 1], words[i], chunk.place.shift());
    if (lines.from_lane < 0) {
      uint32_t turned[4];
      move_bytes<Reversal, 4>(moved, turned);
#pragma unroll
      for (int i = 0; i < 4; ++i) moved[i] = turned[i];
    }
    chunk.write(lines, moved);
  }

 private:
  struct Reversal {
    static constexpr int of(int byte) { return 16 - kSize - byte / kSize * kSize + byte % kSize; }
  };
};

// A chunk of lines that repeat one element of the input, which is read once.
template <class Program>
struct RepeatedChunk : GatheredChunk<Program, 1> {
  bool read(const MoveLines<Program>& lines, uint32_t line, uint32_t number) {
    constexpr int kSize = Program::size(0);
    using Bits = BitsOf<kSize>;
    const uint8_t* from = this->chunk.find(lines, line, number, 0, false) - this->chunk.at;
    const Bits element = *reinterpret_cast<const Bits*>(from);
#pragma unroll
    for (int i = 0; i < 4; ++i) this->words[i] = 0;
#pragma unroll
    for (int e = 0; e < 16 / kSize; ++e) pack(this->words, e, element);
    return true;
  }
};

// A chunk of lines of pixels of three bytes in the opposite order.
template <class Program>
struct MirroredChunk {
  static constexpr int kTogether = kChunksTogether, kThreadsEach = 1;
  using Chunk = OutputChunk<Program, 3>;
  using Careful = GatheredChunk<Program, 3>;
  static uint32_t per_line(const MoveLines<Program>& lines) { return Chunk::per_line(lines); }
  Chunk chunk;
  uint32_t words[6];

  bool read(const MoveLines<Program>& lines, uint32_t line, uint32_t number) {
    return chunk.template read<5>(lines, chunk.find(lines, line, number, -15, true), words);
  }
  // Whatever byte of a pixel the chunk begins with, a word of the output has its bytes from two words of the input.
  void write(const MoveLines<Program>& lines) const {
    if (chunk.is_empty(lines)) return;
    uint32_t aligned[5], moved[4];
#pragma unroll
    for (int i = 0; i < 5; ++i) aligned[i] = gpu::funnel_right(words[i + 1], words[i], chunk.place.shift());
    constexpr uint32_t kFirst = 0x0543, kSecond = 0x2165,
                       kThird = 0x4327;  // for words that begin with this byte of a pixel
    const uint32_t byte = static_cast<uint32_t>(chunk.at + 48) % 3;
    const uint32_t own = byte == 0 ? kFirst : byte == 1 ? kSecond : kThird;
    const uint32_t next = byte == 0 ? kSecond : byte == 1 ? kThird : kFirst;
    const uint32_t after = byte == 0 ? kThird : byte == 1 ? kFirst : kSecond;
    moved[0] = gpu::choose_bytes(aligned[3], aligned[4], own);
    moved[1] = gpu::choose_bytes(aligned[2], aligned[3], next);
    moved[2] = gpu::choose_bytes(aligned[1], aligned[2], after);
    moved[3] = gpu::choose_bytes(aligned[0], aligned[1], own);
    chunk.write(lines, moved);
  }
};

// Pixels of three channels that are moved between adjacent elements and planes: a warp's segment of a line. A thread
// moves kTimes groups of pixels, of which each plane has four bytes; the threads' groups alternate.
template <class Program, bool to_planes>
struct PixelSegment {
  using Careful = void;
  static constexpr int kTogether = 1, kThreadsEach = gpu::kWarp;
  static constexpr int kSize = Program::size(0), kLanes = 4 / kSize, kUnit = 3 * kSize, kTimes = to_planes ? 4 : 2;
  static constexpr int kStep = gpu::kWarp * kLanes;  // lanes between the groups of a thread
  static constexpr int kFrom = to_planes ? kUnit : kSize, kTo = to_planes ? kSize : kUnit;
  // Adjacent words of the input, how many runs of them a group has, and those of the output.
  static constexpr int kRun = to_planes ? 3 : 1, kRuns = 3 / kRun;
  const uint8_t* from;
  uint8_t* to;
  int first;  // lane of the first group, which is negative if it is before the line
  uint32_t words[kTimes][kRuns][kRun + 1];

  static uint32_t per_line(const MoveLines<Program>& lines) {
    constexpr uint32_t kSegment = kStep * kTimes;
    return (static_cast<uint32_t>(lines.lanes) + kLanes - 1 + kSegment - 1) / kSegment;
  }
  bool read(const MoveLines<Program>& lines, uint32_t line, uint32_t number) {
    lines.find(line, from, to);
    // The first group begins before the line, so that words of the first plane, or of the pixels, are aligned.
    const auto offset = static_cast<uint32_t>(reinterpret_cast<uint64_t>(to)) % 4 / kSize;
    const uint32_t before = to_planes ? offset : (kLanes - offset) % kLanes;
    first = static_cast<int>((number * kTimes * gpu::kWarp + gpu::thread_index() % gpu::kWarp) * kLanes) -
            static_cast<int>(before);
    from += first * kFrom, to += first * kTo;
#pragma unroll
    for (int t = 0; t < kTimes; ++t) {
      if (!is_whole(lines, t)) continue;
#pragma unroll
      for (int r = 0; r < kRuns; ++r) {
        const auto address = reinterpret_cast<uint64_t>(run(lines, t, r));
        const auto* source = reinterpret_cast<const uint32_t*>(address & ~uint64_t{3});
#pragma unroll
        for (int i = 0; i < kRun; ++i) words[t][r][i] = source[i];
        words[t][r][kRun] = address % 4 ? source[kRun] : 0;
      }
    }
    return true;
  }
  void write(const MoveLines<Program>& lines) const {
    bool whole = true;
#pragma unroll
    for (int t = 0; t < kTimes; ++t) {
      if (!is_whole(lines, t)) {
        whole = false;
        continue;
      }
      uint32_t aligned[3], moved[3];
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        const uint32_t shift = static_cast<uint32_t>(reinterpret_cast<uint64_t>(run(lines, t, i / kRun))) % 4 * 8;
        aligned[i] = gpu::funnel_right(words[t][i / kRun][i % kRun + 1], words[t][i / kRun][i % kRun], shift);
      }
      uint8_t* const target = to + t * kStep * kTo;
      if constexpr (to_planes) {
        move_bytes<ToPlanes, 3>(aligned, moved);
#pragma unroll
        for (int c = 0; c < 3; ++c) write_plane(target + c * lines.to_plane, moved[c]);
      } else {
        move_bytes<ToPixels, 3>(aligned, moved);
#pragma unroll
        for (int i = 0; i < 3; ++i) reinterpret_cast<uint32_t*>(target)[i] = moved[i];
      }
    }
    if (whole) return;
    STOKER_NO_UNROLL
    for (int t = 0; t < kTimes; ++t)
      if (!is_whole(lines, t)) move_elements(lines, t);
  }

 private:
  using Bits = BitsOf<kSize>;
  const uint8_t* run(const MoveLines<Program>& lines, int t, int r) const {
    return from + t * kStep * kFrom + r * lines.from_plane;
  }
  // Return whether a group's lanes all belong to the line, and its words to the row.
  bool is_whole(const MoveLines<Program>& lines, int t) const {
    const int lane = first + t * kStep;
    bool whole = lane >= 0 && lane + kLanes <= lines.lanes;
#pragma unroll
    for (int r = 0; r < kRuns; ++r) {
      const auto address = reinterpret_cast<uint64_t>(run(lines, t, r)), start = address & ~uint64_t{3};
      whole = whole && start >= lines.first && start + 4 * kRun + (address % 4 ? 4 : 0) <= lines.last;
    }
    return whole;
  }
  void move_elements(const MoveLines<Program>& lines, int t) const {
    const int lane = first + t * kStep;
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      if (lane + k < 0 || lane + k >= lines.lanes) continue;
#pragma unroll
      for (int c = 0; c < 3; ++c)
        *reinterpret_cast<Bits*>(to + (t * kStep + k) * kTo + c * lines.to_plane) =
            *reinterpret_cast<const Bits*>(from + (t * kStep + k) * kFrom + c * lines.from_plane);
    }
  }
  static void write_plane(uint8_t* at, uint32_t word) {
    if (reinterpret_cast<uint64_t>(at) % 4 == 0) {
      *reinterpret_cast<uint32_t*>(at) = word;
      return;
    }
#pragma unroll
    for (int k = 0; k < kLanes; ++k) reinterpret_cast<Bits*>(at)[k] = unpack<Bits>(&word, k);
  }
  struct ToPlanes {
    static constexpr int of(int byte) {
      const int element = byte / kSize;
      return (element % kLanes * 3 + element / kLanes) * kSize + byte % kSize;
    }
  };
  struct ToPixels {
    static constexpr int of(int byte) {
      const int element = byte / kSize;
      return (element % 3 * kLanes + element / 3) * kSize + byte % kSize;
    }
  };
};

// A lane whose output lies anywhere.
template <class Program>
struct MovedLane {
  using Careful = void;
  static constexpr int kTogether = 1, kThreadsEach = 1, kSize = Program::size(0);
  using Bits = BitsOf<kSize>;
  const uint8_t* from;
  uint8_t* to;

  static uint32_t per_line(const MoveLines<Program>& lines) { return static_cast<uint32_t>(lines.lanes); }
  bool read(const MoveLines<Program>& lines, uint32_t line, uint32_t number) {
    lines.find(line, from, to);
    from += number * lines.from_lane, to += number * lines.to_lane;
    return true;
  }
  void write(const MoveLines<Program>& lines) const {
    for (int c = 0; c < lines.inner; ++c)
      *reinterpret_cast<Bits*>(to + c * lines.to_plane) = *reinterpret_cast<const Bits*>(from + c * lines.from_plane);
  }
};

// Move a block's share of a row, whose blocks are given by their number and count. Pieces whose words lie partly outside
// of the row's input are moved after the others, as Piece::Careful. `Lines` is derived from Pieces.
template <class Piece, class Lines>
inline void move_pieces(Lines& lines, uint32_t block, uint32_t blocks) {
  constexpr int kTogether = Piece::kTogether;
  constexpr uint32_t kWorkers = kThreads / Piece::kThreadsEach;
  const uint32_t each = Piece::per_line(lines);
  const uint32_t pieces = each * lines.count, share = (pieces + blocks - 1) / blocks, start = block * share;
  const uint32_t left = start < pieces ? pieces - start : 0, worker = gpu::thread_index() / Piece::kThreadsEach;
  uint32_t line = (start + worker) / each, number = start + worker - line * each;
  if (gpu::thread_index() == 0) {
    lines.per_line = each, lines.start = start, lines.pieces = left < share ? left : share;
    lines.further_lines = kWorkers / each, lines.further = kWorkers % each;
  }
  gpu::block_barrier();
  const auto advance = [&] {
    line += lines.further_lines, number += lines.further;
    if (number >= lines.per_line) number -= lines.per_line, ++line;
  };
  bool done = true;
  for (uint32_t g = worker; g < lines.pieces; g += kTogether * kWorkers) {
    Piece piece[kTogether];
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
      if (g + t * kWorkers < lines.pieces) done &= piece[t].read(lines, line, number);
      advance();
    }
#pragma unroll
    for (int t = 0; t < kTogether; ++t)
      if (g + t * kWorkers < lines.pieces) piece[t].write(lines);
  }
  if constexpr (!std::is_same_v<typename Piece::Careful, void>) {
    static_assert(Piece::kThreadsEach == 1);
    if (done) return;
    line = (lines.start + gpu::thread_index()) / lines.per_line;
    number = lines.start + gpu::thread_index() - line * lines.per_line;
    STOKER_NO_UNROLL
    for (uint32_t g = gpu::thread_index(); g < lines.pieces; g += kThreads) {
      Piece piece;
      if (!piece.read(lines, line, number)) {
        typename Piece::Careful careful;
        careful.read(lines, line, number);
        careful.write(lines);
      }
      advance();
    }
  }
}

template <class Piece, class Program>
inline void move_pieces(MoveLines<Program>& lines, const Part& part) {
  move_pieces<Piece>(lines, part.number, part_count(Row<Program>{lines.base}.slot(), part));
}

// Move a block's part of a row whose elements are contiguous and begin at the same byte of 16 in the input and output.
// A thread reads its next accesses before it writes those that it has. Return false, and move nothing, for any other
// row.
template <class Program>
inline bool move_contiguous(const Row<Program>& row, const Part& part) {
  constexpr int kTogether = 2, kSize = Program::size(0), kBytes = 16;
  using Access = Vector<kBytes / 4>;
  const Slot& slot = row.slot();
  const Port &in = row.port(0), &out = row.port(1);
  if (slot.axes != 1 || slot.inner != 1 || in.stride[0] != kSize || out.stride[0] != kSize) return false;
  if ((in.data - out.data) % kBytes != 0) return false;
  // A part's bytes are a multiple of 16. Its accesses begin `lead` bytes after it; those of the last part end with the
  // row.
  const uint64_t bytes = static_cast<uint64_t>(slot.lanes) * kSize, lead = (kBytes - out.data % kBytes) % kBytes;
  const uint64_t start = part.number * (static_cast<uint64_t>(part.lanes) * kSize) + lead;
  const uint64_t left = bytes > start ? (bytes - start) / kBytes : 0;
  const auto most = static_cast<uint32_t>(part.lanes * kSize / kBytes);
  const uint32_t count = left < most ? static_cast<uint32_t>(left) : most;
  const auto* from = reinterpret_cast<const Access*>(in.data + start);
  auto* to = reinterpret_cast<Access*>(out.data + start);
  Access next[kTogether];
  const auto read = [&](uint32_t first) {
#pragma unroll
    for (int t = 0; t < kTogether; ++t)
      if (first + t * kThreads < count) next[t] = from[first + t * kThreads];
  };
  read(gpu::thread_index());
  for (uint32_t i = gpu::thread_index(); i < count; i += kTogether * kThreads) {
    Access now[kTogether];
#pragma unroll
    for (int t = 0; t < kTogether; ++t) now[t] = next[t];
    read(i + kTogether * kThreads);
#pragma unroll
    for (int t = 0; t < kTogether; ++t)
      if (i + t * kThreads < count) to[i + t * kThreads] = now[t];
  }
  // The bytes before the row's first access and after its last one.
  const auto edge = [&](uint64_t first, uint64_t last) {
    const uint64_t byte = first + gpu::thread_index();
    if (byte < last) reinterpret_cast<uint8_t*>(out.data)[byte] = reinterpret_cast<const uint8_t*>(in.data)[byte];
  };
  if (part.number == 0) edge(0, lead < bytes ? lead : bytes);
  if (left <= most) edge(start + left * kBytes, bytes);
  return true;
}

// Move the lanes of a part of a row of any size, one by one.
template <class Program>
inline void move_lanes(const Row<Program>& row, const Part& part) {
  using Bits = BitsOf<Program::size(0)>;
  const Slot& slot = row.slot();
  const auto lanes = static_cast<uint64_t>(slot.lanes), each = static_cast<uint64_t>(part.lanes);
  const uint64_t begin = part.number * each, end = begin + each < lanes ? begin + each : lanes;
  STOKER_NO_UNROLL
  for (uint64_t i = begin + gpu::thread_index(); i < end; i += kThreads) {
    const Port &in = row.port(0), &out = row.port(1);
    uint64_t from = in.data, to = out.data, rest = i;
    STOKER_NO_UNROLL
    for (int d = 0; d < slot.axes; ++d) {
      const auto extent = static_cast<uint64_t>(slot.extent[d]);
      const uint64_t above = d == slot.axes - 1 ? 0 : rest / extent, index = rest - above * extent;
      rest = above;
      from += index * static_cast<uint64_t>(in.stride[d]), to += index * static_cast<uint64_t>(out.stride[d]);
    }
    STOKER_NO_UNROLL
    for (int64_t c = 0; c < slot.inner; ++c) {
      *reinterpret_cast<Bits*>(to) = *reinterpret_cast<const Bits*>(from);
      from += static_cast<uint64_t>(in.channel), to += static_cast<uint64_t>(out.channel);
    }
  }
}

// Move a block's part of a row of a program that stores what it loads.
template <class Program>
inline void run_moves(const Row<Program>& row, const Part& part) {
  constexpr int kSize = Program::size(0), kTriple = kSize * static_cast<int>(kPixel);
  // Bytes of a line have 31 bits, and pieces of all lines, of which a lane has up to two, 32.
  constexpr int64_t kMostBytes = 1 << 30, kMostLanes = 0x70000000;
  const Slot& slot = row.slot();
  if (move_contiguous(row, part)) return;
  if (slot.lanes > kMostLanes || slot.extent[0] > kMostBytes / kTriple) return move_lanes(row, part);
  STOKER_SHARED(MoveLines<Program>, lines);
  if (gpu::thread_index() == 0) lines.fill(row);
  gpu::block_barrier();
  const Port &in = row.port(0), &out = row.port(1);
  if (slot.inner == 1) {
    if (out.stride[0] != kSize) return move_pieces<MovedLane<Program>>(lines, part);
    if (in.stride[0] == kSize || in.stride[0] == -kSize) return move_pieces<AdjacentChunk<Program>>(lines, part);
    if (in.stride[0] == 0) return move_pieces<RepeatedChunk<Program>>(lines, part);
    return move_pieces<GatheredChunk<Program, 1>>(lines, part);
  }
  if (slot.inner != kPixel) return move_pieces<MovedLane<Program>>(lines, part);
  const bool pixels_in = in.channel == kSize, pixels_out = out.channel == kSize && out.stride[0] == kTriple;
  if (pixels_in && pixels_out) {
    if constexpr (kSize == 1) {
      if (in.stride[0] == -kTriple) return move_pieces<MirroredChunk<Program>>(lines, part);
    }
    return move_pieces<GatheredChunk<Program, static_cast<int>(kPixel)>>(lines, part);
  }
  if constexpr (kSize <= 4) {
    if (pixels_in && in.stride[0] == kTriple && out.stride[0] == kSize)
      return move_pieces<PixelSegment<Program, true>>(lines, part);
    if (pixels_out && in.stride[0] == kSize) return move_pieces<PixelSegment<Program, false>>(lines, part);
  }
  move_pieces<MovedLane<Program>>(lines, part);
}

}  // namespace stoker::stage
