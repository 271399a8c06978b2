// SPDX-License-Identifier: Apache-2.0
// Conversion of samples, for the target of the including file (audio/samples.hpp).

// Number of a file as float32 (F64: the rounded number).
template <Sample kSample>
float float_of(const uint8_t* p) {
  if constexpr (kSample == Sample::U8) return static_cast<float>(*p - 128) * 0x1p-7f;
  else if constexpr (kSample == Sample::I16) return static_cast<float>(load<int16_t>(p)) * 0x1p-15f;
  else if constexpr (kSample == Sample::I24)
    return static_cast<float>(static_cast<int32_t>(uint32_t{p[0]} << 8 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 24)) *
           0x1p-31f;
  else if constexpr (kSample == Sample::I32) return static_cast<float>(load<int32_t>(p)) * 0x1p-31f;
  else if constexpr (kSample == Sample::F32) return load<float>(p);
  else return static_cast<float>(load<double>(p));
}

// Number of a file as an integer of 32 bits; not for floats.
template <Sample kSample>
int32_t whole_of(const uint8_t* p) {
  if constexpr (kSample == Sample::U8) return static_cast<int32_t>(static_cast<uint32_t>(*p ^ 0x80) << 24);
  else if constexpr (kSample == Sample::I16)
    return static_cast<int32_t>(static_cast<uint32_t>(load<uint16_t>(p)) << 16);
  else if constexpr (kSample == Sample::I24)
    return static_cast<int32_t>(uint32_t{p[0]} << 8 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 24);
  else return load<int32_t>(p);
}

template <class Out>
Out quantized(float x) {
  if constexpr (std::is_same_v<Out, float>) {
    return x;
  } else {
    constexpr double kMost = sizeof(Out) == 2 ? 32767.0 : 2147483647.0;
    const double scaled = static_cast<double>(x) * kMost;
    if (!(scaled > -kMost - 1)) return x != x ? Out{0} : static_cast<Out>(-kMost - 1);
    return scaled < kMost ? static_cast<Out>(std::nearbyint(scaled)) : static_cast<Out>(kMost);
  }
}

// Type of the numbers of a file that are copied as they are.
template <Sample kSample>
using Stored = std::conditional_t<
    kSample == Sample::I16, int16_t,
    std::conditional_t<kSample == Sample::I32, int32_t, std::conditional_t<kSample == Sample::F32, float, void>>>;

template <Sample kSample, class Out>
void convert_all(const uint8_t* p, int64_t count, Out* out) {
  constexpr bool kFloats = kSample == Sample::F32 || kSample == Sample::F64;
  if constexpr (std::is_same_v<Out, Stored<kSample>>) {
    if (count > 0) std::memcpy(out, p, static_cast<size_t>(count) * sizeof(Out));  // no samples may have no address
    return;
  }
  for (int64_t i = 0; i < count; ++i, p += size_of(kSample)) {
    if constexpr (std::is_same_v<Out, float>) out[i] = float_of<kSample>(p);
    else if constexpr (kFloats) out[i] = quantized<Out>(float_of<kSample>(p));
    else out[i] = static_cast<Out>(whole_of<kSample>(p) >> (32 - 8 * static_cast<int>(sizeof(Out))));
  }
}

template <Sample kSample, class Out>
void convert_mean(const uint8_t* p, int64_t count, int64_t channels, Out* out) {
  const float part = 1.0f / static_cast<float>(channels);
  constexpr int64_t kSize = size_of(kSample);
  if (channels == 2) {  // a loop without an inner one becomes vectors
    for (int64_t i = 0; i < count; ++i, p += 2 * kSize)
      out[i] = quantized<Out>(float_of<kSample>(p) * part + float_of<kSample>(p + kSize) * part);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    float sum = float_of<kSample>(p) * part;
    p += kSize;
    for (int64_t c = 1; c < channels; ++c, p += kSize) sum += float_of<kSample>(p) * part;
    out[i] = quantized<Out>(sum);
  }
}

template <Sample kSample, class Out>
void convert_as(const uint8_t* p, const Wave& wave, int64_t count, bool downmix, Out* out) {
  if (downmix && wave.channels > 1) convert_mean<kSample>(p, count, wave.channels, out);
  else convert_all<kSample>(p, count * wave.channels, out);
}

template <Sample kSample>
void convert_from(const uint8_t* p, const Wave& wave, int64_t count, bool downmix, DType dtype, uint8_t* out) {
  if (dtype == DType::F32) convert_as<kSample>(p, wave, count, downmix, reinterpret_cast<float*>(out));
  else if (dtype == DType::I16) convert_as<kSample>(p, wave, count, downmix, reinterpret_cast<int16_t*>(out));
  else convert_as<kSample>(p, wave, count, downmix, reinterpret_cast<int32_t*>(out));
}

void convert(const uint8_t* p, const Wave& wave, int64_t count, bool downmix, DType dtype, uint8_t* out) {
  switch (wave.sample) {
    case Sample::U8: return convert_from<Sample::U8>(p, wave, count, downmix, dtype, out);
    case Sample::I16: return convert_from<Sample::I16>(p, wave, count, downmix, dtype, out);
    case Sample::I24: return convert_from<Sample::I24>(p, wave, count, downmix, dtype, out);
    case Sample::I32: return convert_from<Sample::I32>(p, wave, count, downmix, dtype, out);
    case Sample::F32: return convert_from<Sample::F32>(p, wave, count, downmix, dtype, out);
    case Sample::F64: return convert_from<Sample::F64>(p, wave, count, downmix, dtype, out);
  }
}
