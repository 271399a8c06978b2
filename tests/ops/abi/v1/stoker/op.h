/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators in C++ (stoker.cpp.load): the interface between Stoker and a compiled operator, version 1.
 *
 * The interface is C: structures of numbers and pointers, and three functions that the operator exports. It has no
 * Python and no classes of the C++ library, so any compiler can build an operator. Later versions only append to the
 * structures; an operator that was compiled with this file runs with them.
 *
 *     int32_t st_abi(void)            version of this file
 *     const char* st_declare(void)    inputs, outputs, arguments and checks, as text
 *     void st_run(st_row* row)        compute one row
 *
 * C++ code includes this file and writes ST_DECLARE("...") and ST_RUN(row) { ... }, with the helpers of namespace st.
 */
#ifndef STOKER_OP_H
#define STOKER_OP_H

#include <stdint.h>

#define ST_ABI 1
#define ST_MAX_RANK 8

/* Element types. */
enum {
  ST_BOOL = 0,
  ST_UINT8,
  ST_UINT16,
  ST_UINT32,
  ST_UINT64,
  ST_INT8,
  ST_INT16,
  ST_INT32,
  ST_INT64,
  ST_FLOAT16,
  ST_FLOAT32,
  ST_FLOAT64,
  ST_BFLOAT16
};

/* A tensor. Strides are in bytes; inputs may have any, also zero and negative ones, outputs are contiguous. */
typedef struct st_tensor {
  uint8_t* data;
  int32_t dtype, rank;
  int64_t shape[ST_MAX_RANK], stride[ST_MAX_RANK];
} st_tensor;

/* One row of a batch. Everything is valid until st_run returns. Rows run on several threads at the same time. */
typedef struct st_row {
  uint32_t size; /* bytes of this structure in the version of Stoker that runs */
  int32_t inputs, outputs, arguments;
  const st_tensor* in;
  const st_tensor* out;
  const double* args; /* in the order of the declaration */
  uint64_t key;       /* the row's number in the data set */
  int64_t epoch;
  uint32_t (*draw)(struct st_row*);                   /* 32 random bits: they follow from seed, epoch and row */
  void* (*scratch)(struct st_row*, int64_t bytes);    /* memory for this call, at most 4 areas; null: none left */
  void (*fail)(struct st_row*, const char* text);     /* make the row an error; then return */
  void (*set_count)(struct st_row*, int64_t count);   /* first extent of the outputs, if the declaration says count */
  void* host;                                         /* Stoker's */
} st_row;

#ifdef __cplusplus

#include <cmath>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#define ST_EXPORT extern "C" __attribute__((visibility("default")))

#define ST_DECLARE(text)                                \
  ST_EXPORT int32_t st_abi(void) { return ST_ABI; }     \
  ST_EXPORT const char* st_declare(void) { return text; }

/* ST_RUN(row) { ... }: `row` is a st::Row&. Exceptions become the error of the row. */
#define ST_RUN(row)                                                             \
  static void st_user_run(st::Row& row);                                        \
  ST_EXPORT void st_run(st_row* st_raw_row) {                                   \
    try {                                                                       \
      st::Row st_this_row(st_raw_row);                                          \
      st_user_run(st_this_row);                                                 \
    } catch (const std::exception& error) { st_raw_row->fail(st_raw_row, error.what()); } \
    catch (...) { st_raw_row->fail(st_raw_row, "an unknown exception"); }       \
  }                                                                             \
  static void st_user_run(st::Row& row)

namespace st {

template <class T>
constexpr int32_t dtype_of() {
  if constexpr (std::is_same<T, bool>::value) return ST_BOOL;
  else if constexpr (std::is_same<T, uint8_t>::value) return ST_UINT8;
  else if constexpr (std::is_same<T, uint16_t>::value) return ST_UINT16;
  else if constexpr (std::is_same<T, uint32_t>::value) return ST_UINT32;
  else if constexpr (std::is_same<T, uint64_t>::value) return ST_UINT64;
  else if constexpr (std::is_same<T, int8_t>::value) return ST_INT8;
  else if constexpr (std::is_same<T, int16_t>::value) return ST_INT16;
  else if constexpr (std::is_same<T, int32_t>::value) return ST_INT32;
  else if constexpr (std::is_same<T, int64_t>::value) return ST_INT64;
  else if constexpr (std::is_same<T, float>::value) return ST_FLOAT32;
  else if constexpr (std::is_same<T, double>::value) return ST_FLOAT64;
  else return -1;
}

/* Elements of a tensor of a known type: x(i, j, k). With STOKER_CHECKED=1, numbers of elements are checked. */
template <class T>
class Array {
 public:
  explicit Array(const st_tensor& t) : t_(&t) {
    if (t.dtype != dtype_of<typename std::remove_const<T>::type>())
      throw std::invalid_argument("a tensor of another element type than st::Array's");
  }
  int32_t rank() const { return t_->rank; }
  int64_t shape(int axis) const { return t_->shape[axis]; }
  int64_t size() const {
    int64_t n = 1;
    for (int i = 0; i < t_->rank; ++i) n *= t_->shape[i];
    return n;
  }
  template <class... Index>
  T& operator()(Index... index) const {
    const int64_t at[] = {static_cast<int64_t>(index)...};
    constexpr int count = static_cast<int>(sizeof...(index));
    int64_t offset = 0;
#if defined(STOKER_CHECKED) && STOKER_CHECKED
    if (count != t_->rank) throw std::out_of_range("a number of indices that is not the tensor's rank");
#endif
    for (int i = 0; i < count; ++i) {
#if defined(STOKER_CHECKED) && STOKER_CHECKED
      if (at[i] < 0 || at[i] >= t_->shape[i])
        throw std::out_of_range("index " + std::to_string(at[i]) + " of axis " + std::to_string(i) + ", which has " +
                                std::to_string(t_->shape[i]) + " elements");
#endif
      offset += at[i] * t_->stride[i];
    }
    return *reinterpret_cast<T*>(t_->data + offset);
  }

 private:
  const st_tensor* t_;
};

class Row {
 public:
  explicit Row(st_row* raw) : raw_(raw) {}
  const st_tensor& in(int i) const { return raw_->in[check(i, raw_->inputs, "input")]; }
  const st_tensor& out(int i) const { return raw_->out[check(i, raw_->outputs, "output")]; }
  double arg(int i) const { return raw_->args[check(i, raw_->arguments, "argument")]; }
  uint64_t key() const { return raw_->key; }
  int64_t epoch() const { return raw_->epoch; }
  uint32_t draw() { return raw_->draw(raw_); }
  /* A number in [0, 1) with 53 bits. */
  double uniform() {
    const uint64_t high = draw() >> 6, low = draw() >> 5;
    return static_cast<double>((high << 27) | low) * 0x1p-53;
  }
  template <class T>
  T* scratch(int64_t count) {
    if (count < 0 || count > (INT64_MAX >> 8)) throw std::length_error("scratch memory of a negative or enormous size");
    void* const area = raw_->scratch(raw_, count * static_cast<int64_t>(sizeof(T)));
    if (!area) throw std::length_error("at most 4 areas of scratch memory");
    return static_cast<T*>(area);
  }
  /* Set the first extent of outputs that are declared with `count`. */
  void set_count(int64_t count) { raw_->set_count(raw_, count); }

 private:
  static int check(int i, int32_t count, const char* what) {
    if (i < 0 || i >= count) throw std::out_of_range(std::string("no ") + what + " " + std::to_string(i));
    return i;
  }
  st_row* raw_;
};

/* Call f with a value of the tensor's element type: st::dispatch(t, [&](auto zero) { using T = decltype(zero); ... }). */
template <class F>
void dispatch(const st_tensor& t, F&& f) {
  switch (t.dtype) {
    case ST_BOOL: return f(bool{});
    case ST_UINT8: return f(uint8_t{});
    case ST_UINT16: return f(uint16_t{});
    case ST_UINT32: return f(uint32_t{});
    case ST_UINT64: return f(uint64_t{});
    case ST_INT8: return f(int8_t{});
    case ST_INT16: return f(int16_t{});
    case ST_INT32: return f(int32_t{});
    case ST_INT64: return f(int64_t{});
    case ST_FLOAT32: return f(float{});
    case ST_FLOAT64: return f(double{});
    default: throw std::invalid_argument("an element type that st::dispatch does not have");
  }
}

/* Convert as all of Stoker's operators do: round half to even, saturate, NaN becomes 0. */
template <class T>
T round(double x) {
  if constexpr (std::is_floating_point<T>::value) {
    return static_cast<T>(x);
  } else {
    if (!(x == x)) return T{0};
    const double r = std::nearbyint(x);
    if (r <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
    if (r >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(r);
  }
}

}  // namespace st

#endif /* __cplusplus */

#endif /* STOKER_OP_H */
