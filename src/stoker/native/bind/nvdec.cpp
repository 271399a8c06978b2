// SPDX-License-Identifier: Apache-2.0
// Binding of the decoder of a GPU's video engines (video/engine_decoder.py), and of device memory for its clips. Sizes and
// places are checked here, whatever Python has checked.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/gil.hpp"
#include "bind/gpu.hpp"
#include "nvdec/decoder.hpp"
#include "nvdec/reading.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

using nvdec::Decoder;

void require(bool holds, const char* text) {
  if (!holds) throw nb::value_error(text);
}

// Pool of device memory for clips, which is reused when the last array is gone. A batch of clips is released together.
struct ClipMemory {
  std::shared_ptr<gpu::Device> device;
  std::shared_ptr<BlockPool> pool;

  ClipMemory(std::shared_ptr<gpu::Device> own, std::shared_ptr<gpu::MemoryQuota> quota, size_t kept)
      : device(std::move(own)) {
    gpu::DeviceResources resources;
    resources.device = device;
    resources.quota = std::move(quota);
    pool = std::make_shared<BlockPool>(kept, &resources, BlockPool::Idle::AsManyAsHeld);
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

nvdec::Form form_of(const Weights& weights, int order, int turns, bool words, bool planar) {
  require(order >= 0 && order <= 2 && turns >= 0 && turns <= 3, "expected an order of channels, and 0 to 3 turns");
  nvdec::Form form{};
  std::tie(form.luma_zero, form.chroma_zero, form.luma, form.red_v, form.green_u, form.green_v, form.blue_u) = weights;
  form.order = order;
  form.turns = turns;
  form.words = words;
  form.planar = planar;
  return form;
}

// Check that a clip has the size of pictures of a height and a width.
void require_size(const DeviceArray& clip, int height, int width, int turns, bool planar) {
  const int64_t rows = turns & 1 ? width : height, columns = turns & 1 ? height : width;
  const size_t at = planar ? 2 : 1;
  require(clip.shape[at] == rows && clip.shape[at + 1] == columns && clip.shape[planar ? 1 : 3] == 3,
          "expected a clip with the size of the picture");
}

void convert(Decoder& decoder, size_t index, const Weights& weights, int order, int turns, bool planar,
             const std::shared_ptr<gpu::Function>& function, const DeviceArray& clip, int64_t frame) {
  require(function != nullptr && index < decoder.shown().size(), "expected a kernel, and a picture that has come out");
  const nvdec::Form form = form_of(weights, order, turns, clip.dtype == DType::U16, planar);
  require(clip.device.get() == decoder.device(), "expected a clip on the GPU of the decoder");
  const nvdec::Picture& picture = decoder.shown()[index];
  uint8_t* const to = frame_at(clip, frame);
  require_size(clip, picture.height, picture.width, turns, planar);
  const uintptr_t after = written_after(clip);
  without_gil([&] {
    if (after != BlockPool::kNoStream) decoder.follow(after);
    decoder.convert(index, form, function, reinterpret_cast<gpu::Address>(to));
  });
}

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::vector<T> copied(const Vector<T>& from) {
  return std::vector<T>(from.data(), from.data() + from.size());
}

bool is_length(int bytes) { return bytes >= 0 && bytes <= 4 && bytes != 3; }

nvdec::PacketTable new_table(const Vector<int64_t>& pos, const Vector<int64_t>& size, const Vector<uint8_t>& flags,
                             const Vector<int64_t>& order, const Vector<int64_t>& sync, const nb::bytes& header,
                             int length_bytes, std::tuple<int, int, int> disposable) {
  const auto [codec, length, layers] = disposable;
  require(pos.size() == size.size() && pos.size() == flags.size(), "expected facts of the same packets");
  require(order.size() == sync.size(), "expected facts of the same frames");
  require(is_length(length_bytes), "expected lengths of 1, 2 or 4 bytes, or 0 for none");
  require(codec >= 0 && codec <= 2 && length >= 0 && length <= 4 && layers >= 0, "expected a rule for H.264 or HEVC");
  nvdec::PacketTable table;
  table.pos = copied(pos);
  table.size = copied(size);
  for (size_t i = 0; i < table.pos.size(); ++i)
    require(table.pos[i] >= 0 && table.size[i] >= 0 && table.size[i] <= std::numeric_limits<uint32_t>::max(),
            "expected packets at places of the file, of at most 4 GiB");
  table.flags = copied(flags);
  table.order = copied(order);
  table.sync = copied(sync);
  table.number.assign(table.pos.size(), -1);
  for (size_t i = 0; i < table.order.size(); ++i) {
    const int64_t packet = table.order[i];
    const auto is_packet = [&](int64_t one) { return one >= 0 && one < static_cast<int64_t>(table.pos.size()); };
    require(is_packet(packet) && is_packet(table.sync[i]), "expected frames of the packets");
    table.number[static_cast<size_t>(packet)] = static_cast<int64_t>(i);
  }
  table.header.assign(header.c_str(), header.c_str() + header.size());
  table.length_bytes = length_bytes;
  table.disposable = {static_cast<nvdec::DisposableRule::Codec>(codec), static_cast<size_t>(length), layers};
  return table;
}

using PositionFacts = std::tuple<int64_t, int64_t, int64_t, int64_t, bool, std::vector<int64_t>>;

// Reading of frames, with everything that it needs.
struct Reading {
  nb::object decoder, packets;
  Vector<uint8_t> memory;
  std::vector<DeviceArray> clips;
  nvdec::Contents contents;
  int64_t end = 0;
  std::unique_ptr<nvdec::FrameReading> own;
};

// Return where the pixels of frames are written: those of clips that are there.
std::vector<nvdec::Place> places_of(const std::vector<Vector<int64_t>>& frames,
                                    const std::vector<const DeviceArray*>& clips, int64_t count) {
  require(frames.size() == clips.size(), "expected the frames of each clip");
  std::vector<nvdec::Place> places;
  for (size_t k = 0; k < clips.size(); ++k) {
    for (size_t i = 0; i < frames[k].size() && clips[k]; ++i) {
      const int64_t number = frames[k].data()[i];
      require(number >= -1 && number < count, "expected frames of the file, or -1");
      if (number >= 0)
        places.push_back({number, reinterpret_cast<gpu::Address>(frame_at(*clips[k], static_cast<int64_t>(i)))});
    }
  }
  return places;
}

std::unique_ptr<Reading> new_reading(const nb::object& decoder, const nb::object& packets,
                                     const std::optional<Vector<uint8_t>>& memory, int descriptor,
                                     const PositionFacts& position, bool from_start, int64_t end,
                                     const std::vector<Vector<int64_t>>& frames, const nb::list& clips,
                                     const Weights& weights, int order, int turns, bool words, bool planar,
                                     std::shared_ptr<gpu::Function> function, std::tuple<int, int> size) {
  auto reading = std::make_unique<Reading>();
  auto& on = nb::cast<Decoder&>(decoder);
  const auto& table = nb::cast<const nvdec::PacketTable&>(packets);
  const auto [height, width] = size;
  require(function != nullptr && height > 0 && width > 0, "expected a kernel, and a size");
  require((descriptor >= 0) != memory.has_value(), "expected either a descriptor or the contents of a file");
  const nvdec::Form form = form_of(weights, order, turns, words, planar);
  std::vector<const DeviceArray*> own;
  reading->clips.reserve(clips.size());
  for (const nb::handle one : clips) {
    own.push_back(nullptr);
    if (one.is_none()) continue;
    const DeviceArray& clip = reading->clips.emplace_back(nb::cast<const DeviceArray&>(one));
    require(clip.device.get() == on.device(), "expected clips on the GPU of the decoder");
    frame_bytes(clip);
    require_size(clip, height, width, turns, planar);
    require((clip.dtype == DType::U16) == words, "expected clips of words or of bytes, as stated");
    own.back() = &clip;
  }
  const auto count = static_cast<int64_t>(table.pos.size()), known = static_cast<int64_t>(table.order.size());
  require(end >= 0 && end <= known, "expected the end of a read before");
  reading->end = end;
  std::vector<nvdec::WantedFrame> wanted =
      nvdec::planned(table, places_of(frames, own, known), from_start, reading->end);
  nvdec::Position at;
  std::tie(at.start, at.next, at.last, at.last_key, at.is_drained, at.skipped) = position;
  require(at.start >= 0 && at.next >= at.start && at.next <= count && at.last >= -1 && at.last < known,
          "expected a position in the file");
  for (const int64_t one : at.skipped) require(one >= 0 && one < count, "expected packets that were left out");
  reading->decoder = decoder;
  reading->packets = packets;
  if (memory) {
    reading->memory = *memory;
    reading->contents.memory = {memory->data(), memory->size()};
  }
  reading->contents.descriptor = descriptor;
  reading->own = std::make_unique<nvdec::FrameReading>(on, table, reading->contents, std::move(at), std::move(wanted),
                                                       form, std::move(function), height, width);
  std::vector<uintptr_t> streams;
  for (const DeviceArray& clip : reading->clips)
    if (const uintptr_t after = written_after(clip); after != BlockPool::kNoStream) streams.push_back(after);
  without_gil([&] {
    for (const uintptr_t after : streams) on.follow(after);
  });
  return reading;
}

int run(Reading& reading, int64_t packets) {
  return static_cast<int>(without_gil([&] { return reading.own->run(packets); }));
}

PositionFacts position_of(const Reading& reading) {
  const nvdec::Position& at = reading.own->position();
  return {at.start, at.next, at.last, at.last_key, at.is_drained, at.skipped};
}

bool is_disposable(std::tuple<int, int, int> rule, const nb::bytes& packet) {
  const auto [codec, length, layers] = rule;
  require(codec >= 0 && codec <= 2 && length >= 0 && length <= 4 && layers >= 0, "expected a rule for H.264 or HEVC");
  return nvdec::is_disposable({static_cast<nvdec::DisposableRule::Codec>(codec), static_cast<size_t>(length), layers},
                              reinterpret_cast<const uint8_t*>(packet.c_str()), packet.size());
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
  nb::class_<nvdec::PacketTable>(gpu_module, "VideoPackets")
      .def(
          "__init__",
          [](nvdec::PacketTable* self, const Vector<int64_t>& pos, const Vector<int64_t>& size,
             const Vector<uint8_t>& flags, const Vector<int64_t>& order, const Vector<int64_t>& sync,
             const nb::bytes& header, int length_bytes, std::tuple<int, int, int> disposable) {
            new (self) nvdec::PacketTable(new_table(pos, size, flags, order, sync, header, length_bytes, disposable));
          },
          nb::arg("pos"), nb::arg("size"), nb::arg("flags"), nb::arg("order"), nb::arg("sync"), nb::arg("header"),
          nb::arg("length_bytes"), nb::arg("disposable"));
  nb::class_<Reading>(gpu_module, "VideoReading")
      .def(nb::new_(&new_reading), nb::arg("decoder"), nb::arg("packets"), nb::arg("memory").none(),
           nb::arg("descriptor"), nb::arg("position"), nb::arg("from_start"), nb::arg("end"), nb::arg("frames"),
           nb::arg("clips"), nb::arg("weights"), nb::arg("order"), nb::arg("turns"), nb::arg("words"),
           nb::arg("planar"), nb::arg("function"), nb::arg("size"))
      .def("run", &run, nb::arg("packets"))
      .def_prop_ro("position", &position_of)
      .def_prop_ro("end", [](const Reading& reading) { return reading.end; });
  gpu_module.def("is_disposable", &is_disposable, nb::arg("rule"), nb::arg("packet"));
}

}  // namespace stoker
