// SPDX-License-Identifier: Apache-2.0
#include "io/kept_blocks.hpp"

#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "container/frames.hpp"

namespace stoker {

namespace {

constexpr uint64_t kSum = 4;
constexpr time_t kUsedAgainS = 60;  // a block is marked as used at most this often

struct Frame {
  uint64_t before = 0, after = 0;
};

Frame frame_of(Codec codec) {
  const bool is_framed = codec == Codec::TfRecord || codec == Codec::TfRecordUnchecked;
  return is_framed ? Frame{tfrecord::kHeader, tfrecord::kFooter} : Frame{};
}

uint64_t bytes_of(const Range& r) {
  const Frame frame = frame_of(r.codec);
  if (r.codec == Codec::Absent) return 0;
  if (r.codec == Codec::RecordIo) return std::max(r.length, KeptBlocks::kCount);
  return r.length - std::min(r.length, frame.before + frame.after);
}

// Replace the header of a stored record by the number of its data's bytes, and join its parts.
bool join_in_place(uint8_t* record, uint64_t bytes) {
  static_assert(KeptBlocks::kCount == recordio::kHeader);
  uint32_t part = 0, length = 0;
  if (!recordio::read_header(record, part, length)) return false;
  uint8_t* const data = record + recordio::kHeader;
  const uint64_t size = bytes - recordio::kHeader;
  uint64_t joined = length;
  if (part == recordio::kWhole ? length > size
                               : part != recordio::kFirst || !recordio::join_parts(data, size, length, joined))
    return false;
  std::memcpy(record, &joined, sizeof joined);
  return true;
}

class RangesInMemory final : public KeptBlocks::Source {
 public:
  RangesInMemory(std::vector<KeptBlocks::Object> objects, PackedRanges ranges)
      : objects_(std::move(objects)), ranges_(std::move(ranges)) {}
  size_t size() const override { return ranges_.size(); }
  bool find(size_t i, Range& range, KeptBlocks::Object& object, std::string&) const override {
    range = ranges_[i];
    if (range.codec != Codec::Absent) object = objects_[range.file];
    return true;
  }
  bool is_in_memory() const override { return true; }

 private:
  const std::vector<KeptBlocks::Object> objects_;
  const PackedRanges ranges_;
};

// Adjacent memory in three parts: what lies before the wanted bytes of a block, these, and what lies after them.
class Parts {
 public:
  Parts(uint8_t* before, uint64_t before_bytes, uint8_t* wanted, uint64_t wanted_bytes, uint8_t* after,
        uint64_t after_bytes)
      : parts_{{{before, before_bytes}, {wanted, wanted_bytes}, {after, after_bytes}}} {}
  bool read(int descriptor, uint64_t offset) const {
    const int64_t got = read_pieces(descriptor, offset, parts_.data(), static_cast<int>(parts_.size()));
    return got >= 0 && static_cast<uint64_t>(got) == total();
  }
  uint64_t total() const { return parts_[0].iov_len + parts_[1].iov_len + parts_[2].iov_len; }
  // Return the checksum of `count` bytes from `begin` on.
  uint32_t sum(uint64_t begin, uint64_t count) const {
    uint32_t found = 0;
    for (const iovec& part : parts_) {
      const uint64_t skipped = std::min<uint64_t>(begin, part.iov_len);
      const uint64_t taken = std::min<uint64_t>(count, part.iov_len - skipped);
      if (taken > 0) found = crc32c(static_cast<const uint8_t*>(part.iov_base) + skipped, taken, found);
      begin -= skipped, count -= taken;
    }
    return found;
  }

 private:
  std::array<iovec, 3> parts_;
};

}  // namespace

struct KeptBlocks::Wanted {
  const Object& object;
  uint64_t begin, end;            // of the range
  uint64_t data_begin, data_end;  // of its data, without a frame
  uint8_t* to;
};

KeptBlocks::KeptBlocks(std::vector<Object> objects, PackedRanges ranges, uint64_t block_bytes, uint64_t piece_bytes)
    : KeptBlocks(std::make_shared<RangesInMemory>(std::move(objects), std::move(ranges)), block_bytes, piece_bytes) {}

bool KeptBlocks::find_bytes(size_t i, uint64_t& bytes, std::string& error) const {
  Range range;
  Object object;
  if (!source_->find(i, range, object, error)) return false;
  bytes = bytes_of(range);
  return true;
}

bool KeptBlocks::read_block(const Wanted& w, uint64_t block, uint8_t* header, uint8_t* footer) const {
  const uint64_t first_byte = block * block_bytes_, size = std::min(block_bytes_, w.object.size - first_byte);
  const auto within = [&](uint64_t at) { return std::clamp(at, first_byte, first_byte + size) - first_byte; };
  const uint64_t begin = within(w.begin), end = within(w.end), data_begin = within(w.data_begin),
                 data_end = within(w.data_end);
  const uint64_t first = begin / piece_bytes_, last = (end + piece_bytes_ - 1) / piece_bytes_;
  const uint64_t start = first * piece_bytes_, stop = std::min(last * piece_bytes_, size);
  const OpenFile file(w.object.folder + std::to_string(block));
  struct stat status;
  const uint64_t sums_bytes = kSum * ((size + piece_bytes_ - 1) / piece_bytes_);
  if (!file || ::fstat(file.descriptor(), &status) != 0 || static_cast<uint64_t>(status.st_size) != size + sums_bytes)
    return false;
  uint8_t before[kMaxPiece + tfrecord::kHeader], after[kMaxPiece + tfrecord::kFooter];
  uint8_t* const to = data_begin < data_end ? w.to + (first_byte + data_begin - w.data_begin) : w.to;
  const Parts parts(before, data_begin - start, to, data_end - data_begin, after, stop - data_end);
  uint8_t sums[kSum * 64];
  if (!parts.read(file.descriptor(), start)) return false;
  for (uint64_t piece = first; piece < last;) {
    const uint64_t count = std::min<uint64_t>(last - piece, sizeof sums / kSum);
    if (!file.read_at(size + kSum * piece, sums, kSum * count)) return false;
    for (uint64_t k = 0; k < count; ++k, ++piece) {
      const uint64_t at = piece * piece_bytes_ - start;
      if (parts.sum(at, std::min(piece_bytes_, parts.total() - at)) != load_little<uint32_t>(sums + kSum * k))
        return false;
    }
  }
  if (w.data_begin > w.begin && begin < data_begin) std::memcpy(header, before + (begin - start), data_begin - begin);
  if (w.end > w.data_end && data_end < end) std::memcpy(footer, after, end - data_end);
  if (std::time(nullptr) - status.st_mtime > kUsedAgainS) ::futimens(file.descriptor(), nullptr);
  return true;
}

bool KeptBlocks::read(size_t i, uint8_t* to, uint64_t bytes) const {
  Range r;
  Object object;
  std::string error;
  if (!source_->find(i, r, object, error) || bytes != bytes_of(r)) return false;
  const Frame frame = frame_of(r.codec);
  const bool is_recordio = r.codec == Codec::RecordIo;
  if (r.codec == Codec::Absent || (r.length == 0 && frame.before == 0 && !is_recordio)) return true;
  if (r.length < (is_recordio ? recordio::kHeader : frame.before + frame.after)) return false;
  const Wanted wanted{object, r.offset, r.offset + r.length, r.offset + frame.before, r.offset + r.length - frame.after,
                      to};
  // A header or footer in two blocks is rare, and left to the caller.
  const auto in_one_block = [&](uint64_t begin, uint64_t count) {
    return count == 0 || begin / block_bytes_ == (begin + count - 1) / block_bytes_;
  };
  if (!in_one_block(wanted.begin, frame.before) || !in_one_block(wanted.data_end, frame.after)) return false;
  uint8_t header[tfrecord::kHeader], footer[tfrecord::kFooter];
  for (uint64_t block = wanted.begin / block_bytes_; block * block_bytes_ < wanted.end; ++block)
    if (!read_block(wanted, block, header, footer)) return false;
  if (is_recordio) return join_in_place(to, bytes);
  if (frame.before == 0) return true;
  uint64_t length = 0;
  if (!tfrecord::read_header(header, length) || length != bytes) return false;
  return r.codec != Codec::TfRecord || load_little<uint32_t>(footer) == masked_crc(crc32c(to, bytes));
}

}  // namespace stoker
