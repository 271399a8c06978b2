// SPDX-License-Identifier: Apache-2.0
// Kernels that take the image and the labels out of a record of MXNet: number of labels, a single label, two numbers of
// the record (8 bytes each), the labels if there are several, and the image.
#include <cstring>
#include <string>

#include "container/frames.hpp"
#include "kernels/record_part.hpp"

namespace stoker {

namespace {

using recordio::kImageHeader;

// Return false with the reason in `error` if the record is too short for its labels.
bool read_count(const View& record, uint64_t& labels, std::string& error) {
  const auto bytes = static_cast<uint64_t>(record.shape[0]);
  if (record.contiguous() && recordio::read_label_count(record.data, bytes, labels)) return true;
  error = "expected labels and an image in a record, got " + std::to_string(bytes) + " bytes";
  return false;
}

class ImageOfRecord : public RecordPart<> {
 public:
  Ports ports() const override { return ports_of("image_of_record"); }
  Outcome run(const Call& c) const override {
    const View& record = *c.in[0];
    uint64_t labels = 0;
    if (!read_count(record, labels, *c.error)) return Outcome::Error;
    const uint64_t begin = kImageHeader + 4 * labels;
    return show(c, record.data + begin, static_cast<uint64_t>(record.shape[0]) - begin);
  }
};

class LabelsOfRecord : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "labels_of_record", .in = {port_of(DType::U8, 1)}, .out = {port_of(DType::F32, 1)}};
  }
  bool allocates() const override { return true; }
  Outcome run(const Call& c) const override {
    const View& record = *c.in[0];
    uint64_t labels = 0;
    if (!read_count(record, labels, *c.error)) return Outcome::Error;
    const uint64_t count = labels > 0 ? labels : 1;
    View& out = *c.out[0];
    out.data = c.allocator->get(4 * count);
    std::memcpy(out.data, record.data + (labels > 0 ? kImageHeader : recordio::kSingleLabel), 4 * count);
    out.shape[0] = static_cast<int64_t>(count);
    out.stride[0] = 4;
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_image_of_record() { return std::make_shared<ImageOfRecord>(); }
std::shared_ptr<Kernel> make_labels_of_record() { return std::make_shared<LabelsOfRecord>(); }

const Registered kImageOfRecord{"image_of_record", "The image in a record of MXNet. The record is given twice.",
                                make_image_of_record};
const Registered kLabelsOfRecord{"labels_of_record", "The labels in a record of MXNet.", make_labels_of_record};

}  // namespace

}  // namespace stoker
