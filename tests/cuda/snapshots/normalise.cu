// U8 -> F16; 3 channels; resample
#include "device/stage.cuh"

namespace stoker::stage {

struct Program {
  using Interpolator = Resampled<uint8_t>;
  static constexpr int kInputs = 1, kShared = 0, kPorts = 2, kSampled = 3, kStored = 3;
  static constexpr bool kFlat = false, kDivides = false;
  static constexpr bool kShort = true;  // so that it may be there several times
  static constexpr bool kMoves = false;
  static constexpr int kGroup = 1;
  struct Numbers {
    const float v0;
    const float v1;
    const float v2;
    const float v3;
    STOKER_DEVICE explicit Numbers([[maybe_unused]] const Row<Program>& row) : v0(row.template uniform<float>(0)), v1(row.template uniform<float>(1)), v2(row.template uniform<float>(2)), v3(row.template uniform<float>(3)) {}
    STOKER_DEVICE float u0() const { return v0; }
    STOKER_DEVICE float u1() const { return v1; }
    STOKER_DEVICE float u2() const { return v2; }
    STOKER_DEVICE float u3() const { return v3; }
  };
  template <class Lane>
  static STOKER_DEVICE void run(const Lane& lane, [[maybe_unused]] const Numbers& n,
                                [[maybe_unused]] bool& fault) {
    const int32_t r0 = lane.template sample<U8>(0);
    const int32_t r6 = lane.template sample<U8>(1);
    const int32_t r12 = lane.template sample<U8>(2);
    const float r1 = lane.sample_as_float(0);
    const float r2 = op::sub(r1, n.u0());
    const float r3 = op::sub(r2, n.u1());
    const float r4 = op::mul(r3, n.u2());
    const float r5 = op::cast<F16>(r4);
    const float r7 = lane.sample_as_float(1);
    const float r8 = op::sub(r7, n.u0());
    const float r9 = op::sub(r8, n.u0());
    const float r10 = op::mul(r9, n.u2());
    const float r11 = op::cast<F16>(r10);
    const float r13 = lane.sample_as_float(2);
    const float r14 = op::sub(r13, n.u0());
    const float r15 = op::sub(r14, n.u3());
    const float r16 = op::mul(r15, n.u2());
    const float r17 = op::cast<F16>(r16);
    lane.template store<F16>(0, 0, r4);
    lane.template store<F16>(0, 1, r10);
    lane.template store<F16>(0, 2, r16);
  }
};

}  // namespace stoker::stage

STOKER_STAGE(stoker::stage::Program, 2)
