// SPDX-License-Identifier: Apache-2.0
// Reading of frames by number with a decoder of the engines, without Python: the loop of `VideoDecoder.read`
// (video/decoder.py) for files whose packets are contiguous and undamaged. Whatever else happens stops the loop, and
// Python's, which finds and reports damage, reads the frames again.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "nvdec/decoder.hpp"
#include "nvdec/units.hpp"

namespace stoker::nvdec {

// Packets of a file in decoding order, and its frames, as in video/frame_index.py.
struct PacketTable {
  std::vector<int64_t> pos, size;
  std::vector<uint8_t> flags;
  std::vector<int64_t> order;   // packet of each frame
  std::vector<int64_t> sync;    // packet from which each frame is decoded
  std::vector<int64_t> number;  // frame of each packet, or -1
  std::vector<uint8_t> header;  // before the first packet after a seek
  int length_bytes = 0;         // as in `Decoder::feed`
  DisposableRule disposable;

  static constexpr uint8_t kKey = 1, kCorrupt = 4, kLeading = 16;
};

// State of `PacketDecoder` and `VideoDecoder`, whose names it has.
struct Position {
  int64_t start = 0, next = 0, last = -1, last_key = -1;
  bool is_drained = true;
  std::vector<int64_t> skipped;  // packets; those of frames after `last` at least
};

// Frame that is to be read: where decoding begins, its packet, its number, and the packet after which the decoder is
// drained, or -1.
struct WantedFrame {
  int64_t sync, packet, number, stop;
  std::vector<gpu::Address> to;  // where its pixels are written
};

// Frame and an address for its pixels.
struct Place {
  int64_t number;
  gpu::Address to;
};

// Return the frames of a read in the order of decoding, as `VideoDecoder._planned` does. `end`: the frame after the last
// one of the read before, or 0; becomes that of this read. `from_start`: key packets are none.
std::vector<WantedFrame> planned(const PacketTable& table, std::vector<Place> places, bool from_start, int64_t& end);

// Contents of a file: in memory, or read from a descriptor.
struct Contents {
  int descriptor = -1;
  std::span<const uint8_t> memory;
};

class FrameReading {
 public:
  enum class Result { Done, More, Failed };

  // All of the arguments must live longer. `height`, `width`: expected size of the pictures.
  FrameReading(Decoder& decoder, const PacketTable& table, const Contents& contents, Position position,
               std::vector<WantedFrame> wanted, const Form& form, std::shared_ptr<gpu::Function> function, int height,
               int width);

  // Decode some packets. More: call it again. Failed: the frames cannot be read so, and the decoder's state is unknown.
  Result run(int64_t packets) noexcept;
  const Position& position() const { return at_; }

 private:
  Result step(int64_t packets);
  void begin(int64_t packet);
  bool goes_on(const WantedFrame& wanted) const;
  const std::vector<Picture>& feed(bool skips);
  const std::vector<Picture>& drain();
  bool take(const std::vector<Picture>& shown, const WantedFrame& target);
  bool has_none(int64_t first, int64_t end) const;
  int64_t first_pending();
  std::span<const uint8_t> packet(int64_t number);

  Decoder& decoder_;
  const PacketTable& table_;
  const Contents& contents_;
  Position at_;
  std::vector<WantedFrame> wanted_;
  Form form_;
  const std::shared_ptr<gpu::Function> function_;
  const int height_, width_;
  std::unordered_map<int64_t, size_t> pending_;      // place in `wanted_`, by packet
  std::vector<std::pair<int64_t, int64_t>> rising_;  // numbers and packets
  size_t smallest_ = 0, current_ = 0;
  bool is_begun_ = false;  // the current frame is being decoded
  std::vector<uint8_t> buffer_;
};

}  // namespace stoker::nvdec
