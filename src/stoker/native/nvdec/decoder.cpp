// SPDX-License-Identifier: Apache-2.0
#include "nvdec/decoder.hpp"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "nvdec/units.hpp"

namespace stoker::nvdec {

using gpu::DeviceFailure;

namespace {

constexpr unsigned kDisplayDelay = 2;  // pictures between decoding and showing, so that the engines do not wait
constexpr unsigned kSpare = 4;         // surfaces beyond those that the codec needs
constexpr size_t kMapped = 4;
constexpr size_t kLaunched = 2;  // pictures of a launch: while it runs, the engines hand out other surfaces
constexpr int kPixels = 4;       // of a thread: kFramePixels of device/video_frame.cuh
static_assert(2 * kLaunched <= kMapped);
constexpr Result kUnsupported = 801;
constexpr unsigned kFirstSurfaces = 1;  // until the format is known

uint64_t packed(int64_t low, int64_t high) {
  return static_cast<uint32_t>(low) | static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32;
}

}  // namespace

Decoder::Decoder(std::shared_ptr<gpu::Device> device, const std::string& library, Codec codec, int bits)
    : device_(std::move(device)), library_(library), codec_(codec), bits_(bits), pid_(::getpid()) {
  const gpu::Visit visit(device_.get());
  capabilities_.codec = static_cast<int>(codec);
  capabilities_.chroma = kChroma420;
  capabilities_.extra_bits = static_cast<unsigned>(bits - 8);
  check(library_.capabilities(&capabilities_), "the GPU's video engines cannot be asked");
  if (!capabilities_.is_supported)
    throw DeviceFailure("this GPU's video engines do not decode this codec with " + std::to_string(bits) + " bits");
  // An engine waits for the kernels that read its pictures, and they are short: a model's kernels must not delay them.
  stream_ = device_->make_stream(gpu::Priority::Greatest);
}

Decoder::~Decoder() {
  if (::getpid() != pid_) return;
  close();
  const gpu::Visit visit(device_.get(), std::nothrow);
  device_->drop_stream(stream_);
}

void Decoder::close() noexcept {
  const gpu::Visit visit(device_.get(), std::nothrow);
  close_parser();
  close_decoder();
}

void Decoder::check(Result result, const char* what) const {
  constexpr Result kNoMemory = 2;
  if (result == kNoMemory) throw std::bad_alloc();
  if (result) throw DeviceFailure(std::string(what) + " (CUDA error " + std::to_string(result) + ")");
}

void Decoder::close_parser() noexcept {
  if (parser_) library_.parser_destroy(parser_);
  parser_ = nullptr;
  shown_.clear();
}

void Decoder::close_decoder() noexcept {
  waiting_.clear();
  if (!decoder_) return;
  try {
    device_->finish(stream_);
  } catch (const std::exception&) {
    // The device has failed as a whole, so it reads nothing any more.
  }
  for (const Mapped& one : mapped_) library_.unmap(decoder_, one.address);
  mapped_.clear();
  library_.destroy(decoder_);
  decoder_ = nullptr;
}

void Decoder::unmap_all() {
  launch();
  device_->finish(stream_);
  while (!mapped_.empty()) {
    const Mapped one = mapped_.front();
    mapped_.pop_front();
    check(library_.unmap(decoder_, one.address), "a surface cannot be returned");
  }
}

// Return the surface that was mapped first. Those after it may still be read.
void Decoder::unmap_oldest() {
  const auto waits = [&](const Waiting& one) { return one.address == mapped_.front().address; };
  if (std::any_of(waiting_.begin(), waiting_.end(), waits)) launch();
  if (gpu::Event read = mapped_.front().read.get(); !read) device_->finish(stream_);
  else if (!device_->passed(read)) device_->await(read);
  const Mapped one = mapped_.front();
  mapped_.pop_front();
  check(library_.unmap(decoder_, one.address), "a surface cannot be returned");
}

template <class F>
int Decoder::guarded(F&& work) noexcept {
  try {
    return work();
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
    return 0;
  }
}

void Decoder::open_parser() {
  ParserParameters p{};
  p.codec = static_cast<int>(codec_);
  p.surfaces = kFirstSurfaces;
  p.error_threshold = 0;
  p.display_delay = kDisplayDelay;
  p.user = this;
  p.on_format = [](void* user, Format* format) {
    auto* self = static_cast<Decoder*>(user);
    return self->guarded([&] { return self->on_format(*format); });
  };
  p.on_decode = [](void* user, PictureParameters* picture) {
    auto* self = static_cast<Decoder*>(user);
    return self->guarded([&] {
      if (!self->decoder_) throw std::runtime_error("a picture comes before the stream's headers");
      self->packet_of_.at(static_cast<size_t>(picture->surface)) = self->packet_;
      self->check(self->library_.decode(self->decoder_, picture), "a picture cannot be decoded");
      return 1;
    });
  };
  p.on_show = [](void* user, Shown* shown) {
    auto* self = static_cast<Decoder*>(user);
    return self->guarded([&] {
      if (!shown) return 1;  // the end of the stream
      const Rectangle& d = self->display_;
      const int64_t packet =
          self->reorders() ? self->packet_of_.at(static_cast<size_t>(shown->surface)) : shown->timestamp;
      self->shown_.push_back({packet, shown->surface, d.left, d.top, d.right - d.left, d.bottom - d.top,
                              static_cast<int>(self->height_), self->bits_, shown->is_progressive != 0,
                              shown->is_top_field_first != 0, shown->repeat_first_field < 0});
      return 1;
    });
  };
  check(library_.parser_create(&parser_, &p), "a parser of packets cannot be created");
}

void Decoder::restart(std::vector<uint8_t> header) {
  const gpu::Visit visit(device_.get());
  close_parser();
  open_parser();
  header_ = std::move(header);
}

void Decoder::require_supported(const Format& f) const {
  if (f.chroma != kChroma420 || f.extra_bits_luma != f.extra_bits_chroma || 8 + f.extra_bits_luma != bits_)
    throw DeviceFailure("expected a stream with chroma samples for 2 x 2 pixels, of " + std::to_string(bits_) +
                        " bits, as its container says");
  const unsigned width = f.coded_width, height = f.coded_height;
  if (width % 2 || height % 2)
    throw DeviceFailure("the GPU's video engines give pictures with an even number of rows and columns alone");
  if (width < capabilities_.min_width || height < capabilities_.min_height || width > capabilities_.max_width ||
      height > capabilities_.max_height || uint64_t{width} * height / 256 > capabilities_.max_blocks)
    throw DeviceFailure("this GPU's video engines do not decode pictures of " + std::to_string(width) + " x " +
                        std::to_string(height));
  const Rectangle& d = f.display;
  if (d.left < 0 || d.top < 0 || d.right <= d.left || d.bottom <= d.top || d.right > static_cast<int>(width) ||
      d.bottom > static_cast<int>(height) || width > 32767 || height > 32767)
    throw std::runtime_error("the stream shows a part that its pictures do not have");
}

void Decoder::create(const Format& f, unsigned surfaces) {
  Creation c{};
  c.width = f.coded_width;
  c.height = f.coded_height;
  c.surfaces = surfaces;
  c.codec = static_cast<int>(codec_);
  c.chroma = kChroma420;
  c.flags = kPreferEngines;
  c.extra_bits = static_cast<unsigned long>(bits_ - 8);
  c.max_width = max_width_ = std::max(max_width_, f.coded_width);
  c.max_height = max_height_ = std::max(max_height_, f.coded_height);
  c.display = {0, 0, static_cast<short>(f.coded_width), static_cast<short>(f.coded_height)};
  c.surface_format = bits_ > 8 ? kP016 : kNv12;
  c.target_width = f.coded_width;  // the whole picture, so that no sample is scaled
  c.target_height = f.coded_height;
  c.mapped_surfaces = kMapped;
  check(library_.create(&decoder_, &c), "a decoder of the GPU's video engines cannot be created");
}

// The engines' memory is made again only if the pictures need more, because that takes milliseconds.
int Decoder::on_format(const Format& f) {
  require_supported(f);
  const unsigned surfaces = std::min<unsigned>(f.min_surfaces + kSpare, kMaxSurfaces);
  const bool same = decoder_ && f.coded_width == width_ && f.coded_height == height_ && surfaces <= surfaces_;
  const bool fits = decoder_ && f.coded_width <= max_width_ && f.coded_height <= max_height_ && surfaces <= surfaces_;
  if (!same && fits) {
    unmap_all();
    Reconfiguration r{};
    r.width = r.target_width = f.coded_width;
    r.height = r.target_height = f.coded_height;
    r.surfaces = surfaces_;
    r.display = {0, 0, static_cast<short>(f.coded_width), static_cast<short>(f.coded_height)};
    check(library_.reconfigure(decoder_, &r), "a decoder of the GPU's video engines does not take another size");
  } else if (!same) {
    launch();
    close_decoder();
    surfaces_ = std::max(surfaces_, surfaces);
    create(f, surfaces_);
  }
  width_ = f.coded_width;
  height_ = f.coded_height;
  display_ = f.display;
  return static_cast<int>(surfaces_);
}

void Decoder::send(const Packet& packet) {
  Packet own = packet;
  failure_ = nullptr;
  const Result result = library_.parse(parser_, &own);
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
  check(result, "a packet cannot be parsed");
}

const std::vector<Picture>& Decoder::feed(const uint8_t* data, size_t bytes, int64_t number, int length_bytes) {
  const gpu::Visit visit(device_.get());
  if (!parser_) throw std::runtime_error("expected a beginning before a packet");
  shown_.clear();
  content_.assign(header_.begin(), header_.end());
  header_.clear();
  if (length_bytes) append_units(data, bytes, static_cast<size_t>(length_bytes), content_);
  else content_.insert(content_.end(), data, data + bytes);
  packet_ = number;
  send({kTimestamp | kEndOfPicture, content_.size(), content_.data(), number});
  return shown_;
}

const std::vector<Picture>& Decoder::drain() {
  const gpu::Visit visit(device_.get());
  shown_.clear();
  if (parser_) send({kEndOfStream, 0, nullptr, 0});
  return shown_;
}

// A picture is mapped once, also if several clips have it. A surface may have a later picture while the mapping of an
// earlier one is still being read; it is returned first then.
Decoder::Mapped& Decoder::map(const Picture& p) {
  const auto known =
      std::find_if(mapped_.begin(), mapped_.end(), [&](const Mapped& one) { return one.surface == p.surface; });
  if (known != mapped_.end() && known->number == p.number) return *known;
  if (known != mapped_.end()) unmap_all();
  while (mapped_.size() >= kMapped) unmap_oldest();
  Mapping m{};
  m.is_progressive = p.is_progressive;
  m.is_top_field_first = p.is_top_field_first;
  m.is_unpaired_field = p.is_unpaired_field;
  m.stream = reinterpret_cast<Handle>(stream_);
  Mapped mapped{p.number, p.surface, 0, 0, {}};
  check(library_.map(decoder_, p.surface, &mapped.address, &mapped.pitch, &m), "a picture cannot be read");
  mapped_.push_back(mapped);
  Status status{};
  const Result result = library_.status(decoder_, p.surface, &status);
  if (result != kUnsupported) check(result, "a picture has no status");  // H.264 and HEVC have one
  if (status.status == kStatusError || status.status == kStatusConcealed)
    throw std::runtime_error("the GPU's video engines report a damaged picture");
  return mapped_.back();
}

void Decoder::follow(uintptr_t stream) {
  const gpu::Visit visit(device_.get());
  const gpu::WorkStream work_stream = device_->next_work_stream();
  device_->follow(work_stream, stream);
  device_->fork(work_stream, stream_);
}

bool Decoder::Waiting::goes_with(const Waiting& other) const {
  const Picture &a = picture, &b = other.picture;
  return function == other.function && form == other.form && pitch == other.pitch && a.left == b.left &&
         a.top == b.top && a.width == b.width && a.height == b.height && a.coded_height == b.coded_height &&
         a.bits == b.bits;
}

void Decoder::convert(size_t index, const Form& form, const std::shared_ptr<gpu::Function>& function,
                      gpu::Address out) {
  const gpu::Visit visit(device_.get());
  const Picture& picture = shown_.at(index);
  const Mapped& mapped = map(picture);
  const Waiting waiting{mapped.address, mapped.pitch, picture, form, function, out};
  if (!waiting_.empty() && !waiting_.back().goes_with(waiting)) launch();
  waiting_.push_back(waiting);
  if (waiting_.size() == kLaunched) launch();
}

void Decoder::launch() {
  if (waiting_.empty()) return;
  const Waiting first = waiting_.front(), last = waiting_.back();
  const auto count = static_cast<uint64_t>(waiting_.size());
  const Picture& p = first.picture;
  const Form& form = first.form;
  const uint64_t kind = static_cast<uint64_t>(form.turns & 3) | static_cast<uint64_t>(form.order) << 8 |
                        static_cast<uint64_t>(p.bits) << 16 | static_cast<uint64_t>(form.words) << 24 |
                        static_cast<uint64_t>(form.planar) << 25;
  const int columns = form.turns & 1 ? p.height : p.width, rows = form.turns & 1 ? p.width : p.height;
  const uint64_t groups = static_cast<uint64_t>((columns + kPixels - 1) / kPixels) * static_cast<uint64_t>(rows);
  gpu::Launch launch;
  launch.function = first.function.get();
  launch.grid[0] = static_cast<uint32_t>(count * ((groups + kThreads - 1) / kThreads));
  launch.block[0] = kThreads;
  launch.with({first.address, last.address, first.out, last.out,
               packed(first.pitch, (static_cast<int64_t>(p.coded_height) + 1) / 2 * 2), packed(p.width, p.height),
               packed(p.left, p.top), kind, packed(form.luma, form.red_v), packed(form.green_u, form.green_v),
               packed(form.blue_u, form.luma_zero), packed(form.chroma_zero, 0)});
  device_->launch_on(stream_, launch);
  const std::shared_ptr<void> read(device_->record_on(stream_),
                                   [device = device_](gpu::Event event) { device->forget(event); });
  for (Mapped& one : mapped_) {
    const auto is_read = [&](const Waiting& w) { return w.address == one.address; };
    if (std::any_of(waiting_.begin(), waiting_.end(), is_read)) one.read = read;
  }
  waiting_.clear();
}

void Decoder::finish() {
  const gpu::Visit visit(device_.get());
  unmap_all();
}

}  // namespace stoker::nvdec
