// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <limits>

#include "engine.hpp"
#include "half.hpp"
#include "kernels.hpp"

namespace stoker {

namespace {

template <class T>
void put(uint8_t* p, T x) { std::memcpy(p, &x, sizeof x); }

template <class T>
void put_rounded(uint8_t* p, double x) {
  if (std::isnan(x)) return put<T>(p, 0);
  const double r = round_even(x);
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  if (r <= low) return put(p, std::numeric_limits<T>::min());
  if (r >= high) return put(p, std::numeric_limits<T>::max());
  put(p, static_cast<T>(r));
}

class Scalars : public Kernel {
 public:
  Outcome run(const Call& c) const override {
    const View& out = *c.out[0];
    const int64_t n = out.elements();
    for (int64_t i = 0; i < n; ++i) store_scalar(out.data + i * size_of(out.dtype), out.dtype, c.params[i]);
    return Outcome::Ok;
  }
};

class Constant : public Kernel {
 public:
  Constant(std::string bytes, std::vector<int64_t> shape) : bytes_(std::move(bytes)), shape_(std::move(shape)) {}
  bool aliases() const override { return true; }
  Outcome run(const Call& c) const override {
    View& out = *c.out[0];
    out.data = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes_.data()));
    std::copy(shape_.begin(), shape_.end(), out.shape);
    out.set_contiguous_strides();
    return Outcome::Ok;
  }

 private:
  std::string bytes_;
  std::vector<int64_t> shape_;
};

class Select : public Kernel {
 public:
  bool aliases() const override { return true; }
  Outcome run(const Call& c) const override {
    *c.out[0] = read_element(*c.in[0], 0) != 0 ? *c.in[1] : *c.in[2];
    return Outcome::Ok;
  }
};

class OtherRow : public Kernel {
 public:
  explicit OtherRow(int32_t value) : value_(value) {}
  bool aliases() const override { return true; }
  Outcome run(const Call& c) const override {
    const double wanted = read_element(*c.in[0], 0);
    if (!(wanted >= 0 && wanted < static_cast<double>(c.job.rows))) {
      *c.error = "row number " + std::to_string(static_cast<int64_t>(wanted)) + " is outside the batch of " +
                 std::to_string(c.job.rows) + " rows";
      return Outcome::Error;
    }
    const int64_t row = static_cast<int64_t>(wanted);
    if (c.job.failed[row]) {
      *c.error = "the row it takes its data from, " + std::to_string(row) + ", failed";
      return Outcome::Error;
    }
    *c.out[0] = c.job.row(row)[value_];
    return Outcome::Ok;
  }

 private:
  int32_t value_;
};

class Python : public Kernel {
 public:
  Outcome run(const Call&) const override { return Outcome::Python; }
};

}  // namespace

double half_to_double(uint16_t h) {
  const int exponent = (h >> 10) & 31, mantissa = h & 1023;
  double x;
  if (exponent == 31) x = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0) x = std::ldexp(mantissa, -24);
  else x = std::ldexp(mantissa + 1024, exponent - 25);
  return h & 0x8000 ? -x : x;
}

void store_scalar(uint8_t* p, DType dtype, double x) {
  switch (dtype) {
    case DType::Bool: put<uint8_t>(p, x != 0); break;
    case DType::U8: put_rounded<uint8_t>(p, x); break;
    case DType::U16: put_rounded<uint16_t>(p, x); break;
    case DType::U32: put_rounded<uint32_t>(p, x); break;
    case DType::U64: put_rounded<uint64_t>(p, x); break;
    case DType::I8: put_rounded<int8_t>(p, x); break;
    case DType::I16: put_rounded<int16_t>(p, x); break;
    case DType::I32: put_rounded<int32_t>(p, x); break;
    case DType::I64: put_rounded<int64_t>(p, x); break;
    case DType::F16: put<uint16_t>(p, std::isnan(x) ? 0x7e00 : half_from_double(x)); break;
    case DType::BF16: put<uint16_t>(p, bfloat_from_double(x)); break;
    case DType::F32: put<float>(p, static_cast<float>(x)); break;
    case DType::F64: put<double>(p, x); break;
  }
}

std::shared_ptr<Kernel> make_scalars() { return std::make_shared<Scalars>(); }
std::shared_ptr<Kernel> make_constant(std::string bytes, std::vector<int64_t> shape) {
  return std::make_shared<Constant>(std::move(bytes), std::move(shape));
}
std::shared_ptr<Kernel> make_select() { return std::make_shared<Select>(); }
std::shared_ptr<Kernel> make_other_row(int32_t value) { return std::make_shared<OtherRow>(value); }
std::shared_ptr<Kernel> make_python() { return std::make_shared<Python>(); }

}  // namespace stoker
