// SPDX-License-Identifier: Apache-2.0
#include "io/file_ref.hpp"

#include "kernels/registry.hpp"

namespace stoker {

namespace {

class ReadFileRef : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "read_file_ref", .in = {port_of(DType::U8, 1)}, .out = {port_of(DType::U8, 1)}};
  }
  bool allocates() const override { return true; }
  Outcome run(const Call& c) const override {
    const View& ref = *c.in[0];
    if (ref.rank != 1 || !ref.contiguous()) {
      *c.error = "expected a file reference, got an array of another shape";
      return Outcome::Error;
    }
    const auto size = static_cast<size_t>(ref.shape[0]);
    return read_file_ref(ref.data, size, *c.allocator, *c.out[0], *c.error) ? Outcome::Ok : Outcome::Error;
  }
};

std::shared_ptr<Kernel> make_read_file_ref() { return std::make_shared<ReadFileRef>(); }

const Registered kReadFileRef{"read_file_ref", "The bytes of a file that the input refers to (io/file_ref.hpp).",
                              make_read_file_ref};

}  // namespace

}  // namespace stoker
