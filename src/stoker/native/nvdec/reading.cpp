// SPDX-License-Identifier: Apache-2.0
#include "nvdec/reading.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace stoker::nvdec {

namespace {

const std::vector<Picture> kNone;

}  // namespace

std::vector<WantedFrame> planned(const PacketTable& table, std::vector<Place> places, bool from_start, int64_t& end) {
  std::vector<WantedFrame> wanted;
  if (places.empty()) return wanted;
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.number < b.number; });
  const int64_t first = places.front().number;
  // A read that goes on where one before ended is followed by another one, which continues with this decoder.
  const bool goes_on = end ? first >= end : first == 0;
  end = places.back().number + 1;
  wanted.reserve(places.size());
  for (const Place& one : places) {
    if (wanted.empty() || wanted.back().number != one.number) {
      const auto at = static_cast<size_t>(one.number);
      wanted.push_back({from_start ? 0 : table.sync[at], table.order[at], one.number, -1, {}});
    }
    wanted.back().to.push_back(one.to);
  }
  std::sort(wanted.begin(), wanted.end(), [](const WantedFrame& a, const WantedFrame& b) {
    return std::tie(a.sync, a.packet, a.number) < std::tie(b.sync, b.packet, b.number);
  });
  wanted.back().stop = goes_on ? -1 : wanted.back().packet;
  for (size_t i = wanted.size() - 1; i-- > 0;)
    wanted[i].stop = wanted[i + 1].sync > wanted[i].packet + 1 ? wanted[i].packet : wanted[i + 1].stop;
  return wanted;
}

FrameReading::FrameReading(Decoder& decoder, const PacketTable& table, const Contents& contents, Position position,
                           std::vector<WantedFrame> wanted, const Form& form, std::shared_ptr<gpu::Function> function,
                           int height, int width)
    : decoder_(decoder),
      table_(table),
      contents_(contents),
      at_(std::move(position)),
      wanted_(std::move(wanted)),
      form_(form),
      function_(std::move(function)),
      height_(height),
      width_(width) {
  rising_.reserve(wanted_.size());
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (!pending_.emplace(wanted_[i].packet, i).second) throw std::invalid_argument("expected frames of other packets");
    rising_.emplace_back(wanted_[i].number, wanted_[i].packet);
  }
  std::sort(rising_.begin(), rising_.end());
}

FrameReading::Result FrameReading::run(int64_t packets) noexcept {
  try {
    return step(packets);
  } catch (const std::exception&) {  // Python's loop meets it again and reports it
    return Result::Failed;
  }
}

FrameReading::Result FrameReading::step(int64_t packets) {
  const auto count = static_cast<int64_t>(table_.pos.size());
  for (; current_ < wanted_.size(); ++current_, is_begun_ = false) {
    const WantedFrame& target = wanted_[current_];
    while (pending_.count(target.packet)) {
      if (!is_begun_ && !goes_on(target)) begin(target.sync);
      is_begun_ = true;
      if (packets-- <= 0) return Result::More;
      if (at_.is_drained) return Result::Failed;
      const int64_t own = at_.next < count ? table_.number[static_cast<size_t>(at_.next)] : -1;
      // Packets without a frame belong to the one before.
      const bool ends = target.stop >= 0 && target.stop < at_.next && own >= 0;
      const std::vector<Picture>& shown = ends ? drain() : feed(own >= 0 && own < first_pending());
      if (!take(shown, target)) return Result::Failed;
    }
  }
  std::erase_if(at_.skipped, [&](int64_t one) { return table_.number[static_cast<size_t>(one)] <= at_.last; });
  return Result::Done;
}

void FrameReading::begin(int64_t packet) {
  decoder_.restart(table_.header);
  at_ = {packet, packet, -1, -1, false, {}};
}

bool FrameReading::goes_on(const WantedFrame& wanted) const {
  return !at_.is_drained && at_.start <= wanted.sync && wanted.sync <= at_.next && wanted.number > at_.last;
}

int64_t FrameReading::first_pending() {
  while (smallest_ < rising_.size() && !pending_.count(rising_[smallest_].second)) ++smallest_;
  return smallest_ < rising_.size() ? rising_[smallest_].first : -1;
}

const std::vector<Picture>& FrameReading::drain() {
  at_.is_drained = true;
  return decoder_.drain();
}

const std::vector<Picture>& FrameReading::feed(bool skips) {
  const int64_t number = at_.next;
  if (number >= static_cast<int64_t>(table_.pos.size())) return drain();
  ++at_.next;
  const uint8_t flags = table_.flags[static_cast<size_t>(number)];
  if (flags & PacketTable::kCorrupt) throw std::runtime_error("the packet is damaged");
  if (flags & PacketTable::kKey) at_.last_key = number;
  const std::span<const uint8_t> data = packet(number);
  if ((flags & PacketTable::kLeading) && at_.last_key == at_.start) return kNone;  // it needs what was not decoded
  if (skips && is_disposable(table_.disposable, data.data(), data.size())) {
    at_.skipped.push_back(number);
    return kNone;
  }
  return decoder_.feed(data.data(), data.size(), number, table_.length_bytes);
}

std::span<const uint8_t> FrameReading::packet(int64_t number) {
  const auto pos = static_cast<uint64_t>(table_.pos[static_cast<size_t>(number)]);
  const auto size = static_cast<size_t>(table_.size[static_cast<size_t>(number)]);
  if (contents_.descriptor < 0) {
    if (pos > contents_.memory.size() || size > contents_.memory.size() - pos)
      throw std::runtime_error("the file ends within the packet");
    return contents_.memory.subspan(pos, size);
  }
  buffer_.resize(size);
  for (size_t done = 0; done < size;) {
    const ssize_t got =
        ::pread(contents_.descriptor, buffer_.data() + done, size - done, static_cast<off_t>(pos + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw std::runtime_error("the packet cannot be read");
    done += static_cast<size_t>(got);
  }
  return buffer_;
}

// Write the pictures that are wanted. Return false if one is missing or has another size.
bool FrameReading::take(const std::vector<Picture>& shown, const WantedFrame& target) {
  for (size_t i = 0; i < shown.size(); ++i) {
    const Picture& picture = shown[i];
    const bool is_known = picture.number >= 0 && picture.number < static_cast<int64_t>(table_.number.size());
    const int64_t found = is_known ? table_.number[static_cast<size_t>(picture.number)] : -1;
    if (found < 0) continue;  // the file says that it is not shown
    const int64_t missing = at_.last + 1;
    at_.last = found;
    if (missing > 0 && missing < found && !has_none(missing, found)) return false;
    if (found > target.number && pending_.count(target.packet)) return false;
    const auto own = pending_.find(picture.number);
    if (own == pending_.end()) continue;
    if (picture.height != height_ || picture.width != width_) return false;
    for (const gpu::Address to : wanted_[own->second].to) decoder_.convert(i, form_, function_, to);
    pending_.erase(own);
  }
  return true;
}

// Return whether the frames from `first` to `end` were left out, or have packets that were not decoded.
bool FrameReading::has_none(int64_t first, int64_t end) const {
  for (int64_t i = first; i < end; ++i) {
    const int64_t packet = table_.order[static_cast<size_t>(i)];
    const bool is_left_out = std::find(at_.skipped.begin(), at_.skipped.end(), packet) != at_.skipped.end();
    if (!is_left_out && !(at_.is_drained && packet >= at_.next)) return false;
  }
  return true;
}

}  // namespace stoker::nvdec
