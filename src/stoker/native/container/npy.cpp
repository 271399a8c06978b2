// SPDX-License-Identifier: Apache-2.0
#include "container/npy.hpp"

#include <cstring>
#include <optional>
#include <string_view>

namespace stoker {

namespace {

// Cursor over the literal of a Python dict with the keys descr, fortran_order and shape.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}
  bool take(char c) {
    skip_spaces();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<std::string_view> take_string() {
    skip_spaces();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
    const size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view found = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return found;
  }
  std::optional<int64_t> take_number() {
    skip_spaces();
    int64_t number = 0;
    size_t digits = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits)
      if (__builtin_mul_overflow(number, int64_t{10}, &number) ||
          __builtin_add_overflow(number, int64_t{text_[digits] - '0'}, &number))
        return std::nullopt;
    if (digits == 0) return std::nullopt;
    text_.remove_prefix(digits);
    if (!text_.empty() && text_.front() == 'L') text_.remove_prefix(1);  // as Python 2 wrote it
    return number;
  }
  bool ended() {
    skip_spaces();
    return text_.empty();
  }
  bool starts_list() {
    skip_spaces();
    return !text_.empty() && (text_.front() == '[' || text_.front() == '(');
  }

 private:
  void skip_spaces() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\n' || text_.front() == '\t'))
      text_.remove_prefix(1);
  }
  std::string_view text_;
};

std::optional<DType> dtype_named(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    DType dtype;
  } kTypes[] = {{"b1", DType::Bool}, {"u1", DType::U8},  {"u2", DType::U16}, {"u4", DType::U32},
                {"u8", DType::U64},  {"i1", DType::I8},  {"i2", DType::I16}, {"i4", DType::I32},
                {"i8", DType::I64},  {"f2", DType::F16}, {"f4", DType::F32}, {"f8", DType::F64}};
  for (const auto& type : kTypes)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

bool read_type(Literal& literal, NpyHeader& header, std::string& error) {
  if (literal.starts_list()) return error = "expected numbers in an .npy file, got records", false;
  const auto name = literal.take_string();
  if (!name || name->empty()) return error = "expected an .npy file, got a damaged header", false;
  const char order = name->front();
  const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
  const auto dtype = dtype_named(name->substr(has_order ? 1 : 0));
  if (!dtype) {
    error = "expected bool, integers or floats of at most 8 bytes in an .npy file, got the type '" +
            std::string(name->substr(0, 16)) + "'";
    return false;
  }
  header.dtype = *dtype;
  header.is_swapped = order == '>' && size_of(*dtype) > 1;
  return true;
}

bool read_shape(Literal& literal, NpyHeader& header, std::string& error) {
  header.rank = 0;
  if (!literal.take('(')) return error = "expected an .npy file, got a damaged header", false;
  while (!literal.take(')')) {
    const auto extent = literal.take_number();
    if (!extent) return error = "expected an .npy file, got a damaged header", false;
    if (header.rank == kMaxRank - 1) return error = "expected an array of at most 7 axes in an .npy file", false;
    header.shape[header.rank++] = *extent;
    if (!literal.take(',') && header.rank == 1) return error = "expected an .npy file, got a damaged header", false;
  }
  return true;
}

}  // namespace

uint64_t npy_header_size(const uint8_t* data, uint64_t size, std::string& error) {
  const auto* const text = reinterpret_cast<const char*>(data);
  if (size < 10 || std::memcmp(text, "\x93NUMPY", 6) != 0) {
    error = "expected an .npy file, got other bytes at its beginning";
    return 0;
  }
  const int version = data[6];
  if (version < 1 || version > 3) {
    error = "expected an .npy file of version 1 to 3, got version " + std::to_string(version);
    return 0;
  }
  uint64_t length = 0;
  const size_t bytes = version == 1 ? 2 : 4;
  if (size < 8 + bytes) return error = "expected an .npy file, got one that ends within its header", 0;
  for (size_t i = 0; i < bytes; ++i) length |= uint64_t{data[8 + i]} << (8 * i);
  if (length > kMaxNpyHeader) return error = "expected an .npy file with a header of at most 2**20 bytes", 0;
  return 8 + bytes + length;
}

bool read_npy_header(const uint8_t* data, uint64_t size, NpyHeader& header, std::string& error) {
  header = {};
  header.data = npy_header_size(data, size, error);
  if (header.data == 0) return false;
  if (header.data > size) return error = "expected an .npy file, got one that ends within its header", false;
  const size_t begin = data[6] == 1 ? 10 : 12;
  Literal literal({reinterpret_cast<const char*>(data) + begin, static_cast<size_t>(header.data - begin)});
  bool has_type = false, has_order = false, has_shape = false;
  const auto damaged = [&] { return error = "expected an .npy file, got a damaged header", false; };
  if (!literal.take('{')) return damaged();
  while (!literal.take('}')) {
    const auto key = literal.take_string();
    if (!key || !literal.take(':')) return damaged();
    if (*key == "descr" && !has_type) {
      if (!read_type(literal, header, error)) return false;
      has_type = true;
    } else if (*key == "fortran_order" && !has_order) {
      header.is_fortran = literal.take_word("True");
      if (!header.is_fortran && !literal.take_word("False")) return damaged();
      has_order = true;
    } else if (*key == "shape" && !has_shape) {
      if (!read_shape(literal, header, error)) return false;
      has_shape = true;
    } else {
      return damaged();
    }
    literal.take(',');
  }
  if (!has_type || !has_order || !has_shape || !literal.ended()) return damaged();
  int64_t bytes = size_of(header.dtype);
  bool is_empty = false;
  for (int i = 0; i < header.rank; ++i) is_empty = is_empty || header.shape[i] == 0;
  for (int i = 0; i < header.rank; ++i)
    if (__builtin_mul_overflow(bytes, header.shape[i] > 0 ? header.shape[i] : 1, &bytes) || bytes >> 56 != 0)
      return error = "expected an array of less than 2**56 bytes in an .npy file", false;
  header.bytes = is_empty ? 0 : static_cast<uint64_t>(bytes);
  return true;
}

}  // namespace stoker
