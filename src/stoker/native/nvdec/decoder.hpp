// SPDX-License-Identifier: Apache-2.0
// Decoder of a GPU's video engines for the packets of one codec, one file after the other. One thread uses it at a time.
//
// A parser finds the pictures in the packets and gives them to the engines; a picture comes out in the order of its
// time, with the number of its packet. It stays on its surface until the next packet is fed: until then `convert` takes
// its pixels, which a stream of the decoder writes to device memory, two pictures with one launch. The surface that the
// engines hand out for that is returned when the stream has read it.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "nvdec/library.hpp"

namespace stoker::nvdec {

struct Picture {
  int64_t number;  // of its packet
  int surface;
  int left, top, width, height;  // the part of the surface that is shown
  int coded_height;
  int bits;  // of a sample
  bool is_progressive, is_top_field_first, is_unpaired_field;
};

// Pixels that `convert` writes: weights as in video/convert.hpp.
struct Form {
  int32_t luma_zero, chroma_zero, luma, red_v, green_u, green_v, blue_u;
  int order, turns;  // turns: of 90 degrees, counterclockwise
  bool words;        // write words, of weights for them
  bool planar;       // write [3,height,width]
  bool operator==(const Form&) const = default;
};

class Decoder {
 public:
  // Throw DeviceFailure if the library cannot be opened or the GPU has no engine for such pictures.
  Decoder(std::shared_ptr<gpu::Device> device, const std::string& library, Codec codec, int bits);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Begin with another packet. `header` comes before it.
  void restart(std::vector<uint8_t> header);
  // Decode a packet and return the pictures that come out. `length_bytes`: size of the lengths before the units of the
  // packet, which are replaced with start codes; 0: there are none. Throw DeviceFailure, or std::runtime_error for a
  // damaged packet.
  const std::vector<Picture>& feed(const uint8_t* data, size_t bytes, int64_t number, int length_bytes);
  const std::vector<Picture>& drain();
  // Let later calls of `convert` write after what has been issued to a stream of the application.
  void follow(uintptr_t stream);
  // Write one of the pictures that came out last to `out`, [height,width,3], by the end of `finish`. Throw
  // std::runtime_error if it is damaged.
  void convert(size_t index, const Form& form, const std::shared_ptr<gpu::Function>& function, gpu::Address out);
  void finish();          // wait until everything is written
  void close() noexcept;  // release the engines; `restart` takes them again
  const std::vector<Picture>& shown() const { return shown_; }
  const gpu::Device* device() const { return device_.get(); }

  static constexpr int kThreads = 256;

 private:
  // Whether pictures are shown in another order than that of their packets. The parser gives time stamps to such
  // pictures in rising order, so the surface determines which packet a picture is from. Other codecs may show a surface
  // again, for which the time stamp determines it.
  bool reorders() const { return codec_ == Codec::H264 || codec_ == Codec::HEVC; }
  struct Mapped {
    int64_t number;  // of the picture's packet
    int surface;
    unsigned long long address;
    unsigned pitch;
    std::shared_ptr<void> read;  // event that passes when the stream has read it; null: no launch has been issued
  };
  // Conversion that has not been launched. Its surface is mapped.
  struct Waiting {
    unsigned long long address;
    unsigned pitch;
    Picture picture;
    Form form;
    std::shared_ptr<gpu::Function> function;
    gpu::Address out;
    bool goes_with(const Waiting& other) const;
  };
  Mapped& map(const Picture& picture);
  void launch();  // those that wait
  void unmap_oldest();
  void send(const Packet& packet);
  void open_parser();
  void close_parser() noexcept;
  void close_decoder() noexcept;
  void unmap_all();
  int on_format(const Format& format);
  void require_supported(const Format& format) const;
  void create(const Format& format, unsigned surfaces);
  void check(Result result, const char* what) const;
  template <class F>
  int guarded(F&& work) noexcept;

  const std::shared_ptr<gpu::Device> device_;
  const Library library_;
  const Codec codec_;
  const int bits_;
  Capabilities capabilities_{};
  uintptr_t stream_ = 0;
  Handle parser_ = nullptr, decoder_ = nullptr;
  unsigned width_ = 0, height_ = 0, max_width_ = 0, max_height_ = 0, surfaces_ = 0;
  Rectangle display_{};
  static constexpr size_t kMaxSurfaces = 32;
  std::array<int64_t, kMaxSurfaces> packet_of_{};  // by surface
  int64_t packet_ = 0;                             // that is being decoded
  std::vector<uint8_t> header_, content_;
  std::vector<Picture> shown_;
  std::deque<Mapped> mapped_;
  std::vector<Waiting> waiting_;
  const int pid_;               // the process that may use the library: a forked child may not
  std::exception_ptr failure_;  // of a callback, through which no exception may pass
};

}  // namespace stoker::nvdec
