// SPDX-License-Identifier: Apache-2.0
// Kernels that take the image and the label out of a record of Caffe.
#include <cstring>
#include <memory>
#include <string>

#include "container/datum.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"

namespace stoker {

namespace {

bool read(const View& record, Datum& found, std::string& error) {
  if (record.contiguous() && read_datum({record.data, static_cast<size_t>(record.shape[0])}, found)) return true;
  error = "expected a record of Caffe, got damaged bytes";
  return false;
}

// The record comes twice: as bytes to read, and as memory to show.
class ImageOfDatum : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "image_of_datum",
            .in = {port_of(DType::U8, 1), port_of(DType::U8, 1)},
            .out = {{.types = types(DType::U8), .least_rank = 1, .most_rank = 3}},
            .shows = 0b10};
  }
  void check(const StepFacts& step) const override {
    step.require(step.in_value(0) == step.in_value(1), "inputs", "one record twice", "two values");
    step.require(step.out_rank(0) != 2, "output", "one or three axes", "two");
  }
  bool aliases() const override { return true; }
  Outcome run(const Call& c) const override {
    Datum found;
    if (!read(*c.in[0], found, *c.error)) return Outcome::Error;
    View& out = *c.out[0];
    if (found.is_encoded != (out.rank == 1)) {
      *c.error = std::string("expected ") + (out.rank == 1 ? "an encoded image" : "pixels") +
                 ", as in the first record, got the other kind";
      return Outcome::Error;
    }
    out.data = const_cast<uint8_t*>(found.data.data ? found.data.data : c.in[1]->data);
    if (out.rank == 1) {
      out.shape[0] = static_cast<int64_t>(found.data.size);
      out.stride[0] = 1;
      return Outcome::Ok;
    }
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(found.height, found.width, &bytes) ||
        __builtin_mul_overflow(bytes, found.channels, &bytes) || bytes != found.data.size || bytes == 0) {
      *c.error = "expected height, width and channels of " + std::to_string(found.data.size) + " bytes, got " +
                 std::to_string(found.height) + ", " + std::to_string(found.width) + " and " +
                 std::to_string(found.channels);
      return Outcome::Error;
    }
    out.shape[0] = static_cast<int64_t>(found.height);
    out.shape[1] = static_cast<int64_t>(found.width);
    out.shape[2] = static_cast<int64_t>(found.channels);
    out.set_contiguous_strides();
    return Outcome::Ok;
  }
};

class LabelOfDatum : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "label_of_datum", .in = {port_of(DType::U8, 1)}, .out = {port_of(DType::I32, 1)}};
  }
  bool allocates() const override { return true; }
  Outcome run(const Call& c) const override {
    Datum found;
    if (!read(*c.in[0], found, *c.error)) return Outcome::Error;
    View& out = *c.out[0];
    out.data = c.allocator->get(sizeof found.label);
    std::memcpy(out.data, &found.label, sizeof found.label);
    out.shape[0] = found.has_label ? 1 : 0;
    out.stride[0] = sizeof found.label;
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_image_of_datum() { return std::make_shared<ImageOfDatum>(); }
std::shared_ptr<Kernel> make_label_of_datum() { return std::make_shared<LabelOfDatum>(); }

const Registered kImageOfDatum{"image_of_datum", "The image in a record of Caffe. The record is given twice.",
                               make_image_of_datum};
const Registered kLabelOfDatum{"label_of_datum", "The label in a record of Caffe; none if the record lacks it.",
                               make_label_of_datum};

}  // namespace

}  // namespace stoker
