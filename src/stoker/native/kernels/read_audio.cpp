// SPDX-License-Identifier: Apache-2.0
// Reading of parts of audio files. A part of a long WAV file becomes a file of its own.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "audio/wav.hpp"
#include "io/files.hpp"
#include "kernels/records.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

constexpr uint64_t kShort = uint64_t{1} << 20;  // bytes of a file that one read takes anyway
constexpr size_t kHead = size_t{1} << 16;       // bytes that are read to find the header

struct Part {
  wav::Wave wave;
  uint64_t offset, bytes;  // of the samples in the file
};

// Find the samples of a part in seconds. Return false if the file must be read in whole: it is no plain WAV file, or
// the part is none, which the decoder reports.
bool find_part(const std::vector<uint8_t>& head, uint64_t size, double offset, double duration, Part* part) {
  std::string unused;
  wav::Wave& wave = part->wave;
  if (wav::parse_start(head.data(), head.size(), size, &wave, &unused) != wav::Parsed::Ok) return false;
  if (wave.offset > static_cast<int64_t>(head.size()) || !(offset >= 0) || !(duration >= 0)) return false;
  // As DecodeAudio._range counts them.
  const auto rate = static_cast<double>(wave.rate), frames = static_cast<double>(wave.frames);
  const double first = std::nearbyint(offset * rate);
  if (!(first <= frames)) return false;
  const double left = frames - first;
  const double count = duration > 0 ? std::min(std::nearbyint(duration * rate), left) : left;
  const auto width = static_cast<uint64_t>(wave.channels * wav::size_of(wave.sample));
  part->offset = static_cast<uint64_t>(wave.offset) + static_cast<uint64_t>(first) * width;
  part->bytes = static_cast<uint64_t>(count) * width;
  return part->bytes > 0 && part->bytes < UINT32_MAX;
}

// The file of a row, or the part of it in seconds that the parameters say: its first second, and its length, 0: to the
// end. The second output is the part that the decoder still has to take.
class ReadAudioPart : public Kernel {
 public:
  ReadAudioPart(std::shared_ptr<FileTable> files, int reader) : files_(std::move(files)), reader_(reader) {}
  Ports ports() const override {
    return {.kernel = "read_audio_part", .out = {port_of(DType::U8, 1), port_of(DType::F64, 1)}, .params = 2};
  }
  void check(const StepFacts& step) const override { step.require_reader(reader_); }
  bool allocates() const override { return true; }
  bool fits(const Call& c) const override {
    if (c.out[1]->shape[0] == 2) return true;
    *c.error = "expected memory for two numbers";
    return false;
  }
  Outcome run(const Call& c) const override {
    const auto index = static_cast<uint64_t>(c.job.indices[reader_][c.row]);
    if (index >= files_->size()) return outside(c, index, files_->size());
    const std::string path = files_->path(index);
    const OpenFile file(path);
    uint64_t size = 0;
    if (!is_regular(file, path, size, *c.error)) return Outcome::Error;
    double left[] = {c.params[0], c.params[1]};
    Part part;
    std::vector<uint8_t> head;
    if (size > kShort) {
      head.resize(kHead);
      if (!file.read_at(0, head.data(), head.size())) head.clear();
    }
    if (!head.empty() && find_part(head, size, left[0], left[1], &part)) {
      if (!read_part(file, head, part, c)) return Outcome::Error;
      left[0] = left[1] = 0;
    } else if (!read_whole(file, path, *c.allocator, *c.out[0], *c.error)) {
      return Outcome::Error;
    }
    std::memcpy(c.out[1]->data, left, sizeof left);
    return Outcome::Ok;
  }

 private:
  // Write the file's header, with the size of the part, and the part.
  static bool read_part(const OpenFile& file, const std::vector<uint8_t>& head, const Part& part, const Call& c) {
    const auto header = static_cast<size_t>(part.wave.offset);
    uint8_t* const to = c.allocator->get(header + part.bytes);
    std::memcpy(to, head.data(), header);
    const auto bytes = static_cast<uint32_t>(part.bytes);
    std::memcpy(to + header - sizeof bytes, &bytes, sizeof bytes);
    if (!file.read_at(part.offset, to + header, part.bytes)) {
      *c.error = "expected " + std::to_string(part.bytes) + " bytes of samples from byte " +
                 std::to_string(part.offset) + " on: the file is cut off or cannot be read";
      return false;
    }
    View& out = *c.out[0];
    out.data = to;
    out.shape[0] = static_cast<int64_t>(header + part.bytes);
    out.stride[0] = 1;
    return true;
  }

  const std::shared_ptr<FileTable> files_;
  const int reader_;
};

std::shared_ptr<Kernel> make_read_audio_part(std::shared_ptr<FileTable> files, int reader) {
  return std::make_shared<ReadAudioPart>(std::move(files), reader);
}

const Registered kReadAudioPart{"read_audio_part",
                                "The bytes of an audio file, or of a part of it.",
                                make_read_audio_part,
                                {{"files", "the files"}, {"reader", "the column of the batch's indices"}}};

}  // namespace

}  // namespace stoker
