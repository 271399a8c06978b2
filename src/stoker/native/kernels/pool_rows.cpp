// SPDX-License-Identifier: Apache-2.0
// Averages over the rows of a batch, computed once for all of them.
#include <algorithm>
#include <cstring>
#include <string>

#include "kernels/pool_rows.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "shared/pooled_rows.hpp"

namespace stoker {

namespace pool {

namespace {

std::string extents_text(const View& v) {
  std::string all;
  for (int i = 0; i < v.rank; ++i) all += (i ? ", " : "") + std::to_string(v.shape[i]);
  return "[" + all + "]";
}

}  // namespace

Ports ports() {
  return {.kernel = "pool_rows",
          .in = {{.types = types(DType::F32, DType::F64)}},
          .out = {{.types = types(DType::F64), .same_extents = 0}},
          .params = 2,
          .other_rows_of = 0};
}

bool is_alike(const CombineCall& call) {
  const View& first = call.in[0];
  for (const View& row : call.in) {
    if (!row.has_extents_of(first)) {
      *call.error = "expected equal extents along the other axes in a batch, got averages of extents " +
                    extents_text(first) + " and " + extents_text(row);
      return false;
    }
    if (row.contiguous()) continue;
    *call.error = "expected contiguous averages";
    return false;
  }
  return true;
}

double divisor(const CombineCall& call) {
  double count = 0;  // exact
  for (size_t i = 0; i < call.in.size(); ++i) count += call.params[i * call.param_count];
  return count - call.params[1];
}

}  // namespace pool

namespace {

constexpr int64_t kColumns = 64;  // whose lanes stay in the cache

template <class Average>
void pool_columns(const CombineCall& call, double left, int64_t first, int64_t count, double* out) {
  double lanes[pool::kLanes][kColumns] = {};
  for (size_t i = 0; i < call.in.size(); ++i) {
    double* const lane = lanes[i % pool::kLanes];
    const auto* const averages = reinterpret_cast<const Average*>(call.in[i].data) + first;
    const double numbers = call.params[i * call.param_count];
    for (int64_t c = 0; c < count; ++c) lane[c] += pool::term(static_cast<double>(averages[c]), numbers);
  }
  for (int half = pool::kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l)
      for (int64_t c = 0; c < count; ++c) lanes[l][c] += lanes[l + half][c];
  for (int64_t c = 0; c < count; ++c) out[first + c] = pool::averaged(lanes[0][c], left);
}

class PoolRows : public Kernel {
 public:
  Ports ports() const override { return pool::ports(); }
  bool combines() const override { return true; }
  bool combine(const CombineCall& call) const override {
    if (!pool::is_alike(call)) return false;
    const int64_t columns = call.in[0].elements();
    const double left = pool::divisor(call);
    call.result->data = call.result->memory.get(static_cast<size_t>(columns) * sizeof(double));
    auto* const out = reinterpret_cast<double*>(call.result->data);
    for (int64_t c = 0; c < columns; c += kColumns) {
      const int64_t count = std::min(kColumns, columns - c);
      if (call.in[0].dtype == DType::F64) pool_columns<double>(call, left, c, count, out);
      else pool_columns<float>(call, left, c, count, out);
    }
    return true;
  }
  Outcome run(const Call& c) const override {
    std::memcpy(c.out[0]->data, c.combined->data, static_cast<size_t>(c.out[0]->elements()) * sizeof(double));
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_pool_rows() { return std::make_shared<PoolRows>(); }

const Registered kPoolRows{"pool_rows", "The averages of a batch, from those of its rows.", make_pool_rows};

}  // namespace

}  // namespace stoker
