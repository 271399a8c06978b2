// SPDX-License-Identifier: Apache-2.0
// Binding of the decoder of a GPU's video engines (video/engine_decoder.py), and of device memory for its clips. Sizes and
// places are checked here, whatever Python has checked.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bind/gil.hpp"
#include "bind/gpu.hpp"
#include "nvdec/decoder.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

using nvdec::Decoder;

void require(bool holds, const char* text) {
  if (!holds) throw nb::value_error(text);
}

// Pool of device memory for clips, which is reused when the last array is gone.
struct ClipMemory {
  std::shared_ptr<gpu::Device> device;
  std::shared_ptr<BlockPool> pool;

  ClipMemory(std::shared_ptr<gpu::Device> own, std::shared_ptr<gpu::MemoryQuota> quota, size_t kept)
      : device(std::move(own)) {
    gpu::DeviceResources resources;
    resources.device = device;
    resources.quota = std::move(quota);
    pool = std::make_shared<BlockPool>(kept, &resources);
  }
};

// Return uninitialised memory for frames. Consumers may still read what was in it: see `written_after`.
DeviceArray new_clip(ClipMemory& memory, std::tuple<int64_t, int64_t, int64_t> extents, bool words, bool planar) {
  constexpr int64_t kMost = 1 << 20;
  const auto [frames, height, width] = extents;
  require(frames > 0 && height > 0 && width > 0 && frames <= kMost && height <= kMost && width <= kMost,
          "expected a clip of at least a frame, and at most 2**20 frames, rows and columns");
  const double bytes = 3.0 * static_cast<double>(frames) * static_cast<double>(height) * static_cast<double>(width);
  if (bytes > 1e15) throw std::bad_alloc();
  DeviceArray clip;
  clip.device = memory.device;
  clip.dtype = words ? DType::U16 : DType::U8;
  if (planar) clip.shape = {frames, 3, height, width};
  else clip.shape = {frames, height, width, 3};
  const auto size = static_cast<size_t>(3 * frames * height * width) * (words ? 2 : 1);
  clip.block = std::make_shared<BlockPool::Block>(without_gil([&] {
    const gpu::Visit visit(memory.device.get());
    return memory.pool->take(size);
  }));
  clip.data = clip.block->data;
  return clip;
}

// Return the bytes of a frame.
int64_t frame_bytes(const DeviceArray& clip) {
  require(
      clip.shape.size() == 4 && (clip.shape[3] == 3 || clip.shape[1] == 3) &&
          (clip.dtype == DType::U8 || clip.dtype == DType::U16),
      "expected a clip of frames, height, width and three channels, or with the channels first, of uint8 or uint16");
  return clip.shape[1] * clip.shape[2] * clip.shape[3] * size_of(clip.dtype);
}

uint8_t* frame_at(const DeviceArray& clip, int64_t frame) {
  const int64_t bytes = frame_bytes(clip);
  require(frame >= 0 && frame < clip.shape[0], "expected a frame of the clip");
  return clip.data + frame * bytes;
}

// Return the stream on which a consumer may still read what the clip's memory held, and forget it.
uintptr_t written_after(const DeviceArray& clip) {
  return std::atomic_ref<uintptr_t>(clip.block->stream).exchange(BlockPool::kNoStream, std::memory_order_relaxed);
}

// Write an image to a frame of a clip, and wait for the copy.
void write_frame(const DeviceArray& clip, int64_t frame,
                 const nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& bytes) {
  const auto to = reinterpret_cast<gpu::Address>(frame_at(clip, frame));
  require(static_cast<int64_t>(bytes.size()) == frame_bytes(clip), "expected the bytes of one frame");
  const uintptr_t after = written_after(clip);
  without_gil([&] {
    const gpu::Visit visit(clip.device.get());
    if (after != BlockPool::kNoStream) {
      const gpu::WorkStream work_stream = clip.device->next_work_stream();
      gpu::do_now(*clip.device, work_stream, [&] { clip.device->follow(work_stream, after); });
    }
    clip.device->copy_in(to, bytes.data(), bytes.size());
    gpu::wait_and_forget(*clip.device, clip.device->record_copies());
  });
}

// Number, height and width of pictures.
nb::list described(const std::vector<nvdec::Picture>& shown) {
  nb::list found;
  for (const nvdec::Picture& p : shown) found.append(nb::make_tuple(p.number, p.height, p.width));
  return found;
}

nb::list feed(Decoder& decoder, const nb::bytes& packet, int64_t number, int length_bytes) {
  require(length_bytes == 0 || length_bytes == 1 || length_bytes == 2 || length_bytes == 4,
          "expected lengths of 1, 2 or 4 bytes, or 0 for none");
  require(packet.size() <= std::numeric_limits<uint32_t>::max(), "expected a packet of at most 4 GiB");
  const auto* data = reinterpret_cast<const uint8_t*>(packet.c_str());
  const size_t bytes = packet.size();
  return described(*without_gil([&] { return &decoder.feed(data, bytes, number, length_bytes); }));
}

using Weights = std::tuple<int, int, int, int, int, int, int>;

void convert(Decoder& decoder, size_t index, const Weights& weights, int order, int turns, bool planar,
             const std::shared_ptr<gpu::Function>& function, const DeviceArray& clip, int64_t frame) {
  require(function != nullptr && index < decoder.shown().size(), "expected a kernel, and a picture that has come out");
  require(order >= 0 && order <= 2 && turns >= 0 && turns <= 3, "expected an order of channels, and 0 to 3 turns");
  require(clip.device.get() == decoder.device(), "expected a clip on the GPU of the decoder");
  const nvdec::Picture& picture = decoder.shown()[index];
  uint8_t* const to = frame_at(clip, frame);
  const int64_t height = turns & 1 ? picture.width : picture.height, width = turns & 1 ? picture.height : picture.width;
  const size_t rows = planar ? 2 : 1;
  require(clip.shape[rows] == height && clip.shape[rows + 1] == width && clip.shape[planar ? 1 : 3] == 3,
          "expected a clip with the size of the picture");
  nvdec::Form form{};
  std::tie(form.luma_zero, form.chroma_zero, form.luma, form.red_v, form.green_u, form.green_v, form.blue_u) = weights;
  form.order = order;
  form.turns = turns;
  form.words = clip.dtype == DType::U16;
  form.planar = planar;
  const uintptr_t after = written_after(clip);
  without_gil([&] {
    if (after != BlockPool::kNoStream) decoder.follow(after);
    decoder.convert(index, form, *function, reinterpret_cast<gpu::Address>(to));
  });
}

}  // namespace

void bind_nvdec(nb::module_& gpu_module) {
  nb::class_<ClipMemory>(gpu_module, "ClipMemory")
      .def(nb::init<std::shared_ptr<gpu::Device>, std::shared_ptr<gpu::MemoryQuota>, size_t>(), nb::arg("device"),
           nb::arg("quota"), nb::arg("kept"))
      .def("clip", &new_clip, nb::arg("extents"), nb::arg("words"), nb::arg("planar"));
  gpu_module.def("write_frame", &write_frame, nb::arg("clip"), nb::arg("frame"), nb::arg("bytes"));
  nb::class_<Decoder>(gpu_module, "VideoDecoder")
      .def(
          "__init__",
          [](Decoder* self, std::shared_ptr<gpu::Device> device, const std::string& library, int codec, int bits) {
            require(codec == 4 || (codec >= 8 && codec <= 11), "expected H.264, HEVC, VP8, VP9 or AV1");
            require(bits == 8 || bits == 10 || bits == 12, "expected 8, 10 or 12 bits");
            without_gil(
                [&] { new (self) Decoder(std::move(device), library, static_cast<nvdec::Codec>(codec), bits); });
          },
          nb::arg("device"), nb::arg("library"), nb::arg("codec"), nb::arg("bits"))
      .def(
          "restart",
          [](Decoder& decoder, const nb::bytes& header) {
            const std::vector<uint8_t> own(header.c_str(), header.c_str() + header.size());
            without_gil([&] { decoder.restart(own); });
          },
          nb::arg("header"))
      .def("feed", &feed, nb::arg("packet"), nb::arg("number"), nb::arg("length_bytes"))
      .def("drain", [](Decoder& decoder) { return described(*without_gil([&] { return &decoder.drain(); })); })
      .def("convert", &convert, nb::arg("index"), nb::arg("weights"), nb::arg("order"), nb::arg("turns"),
           nb::arg("planar"), nb::arg("function"), nb::arg("clip"), nb::arg("frame"))
      .def("close", [](Decoder& decoder) { without_gil([&] { decoder.close(); }); })
      .def("finish", [](Decoder& decoder) { without_gil([&] { decoder.finish(); }); });
}

}  // namespace stoker
