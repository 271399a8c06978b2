// I32, I32 -> I32, U8; flat
#include "device/stage.cuh"

namespace stoker::stage {

struct Program {
  using Interpolator = Unsampled;
  static constexpr int kInputs = 2, kShared = 0, kPorts = 4, kSampled = 1, kStored = 1;
  static constexpr bool kFlat = true, kDivides = true;
  static constexpr bool kShort = true;  // so that it may be there several times
  static constexpr bool kMoves = false;
  static constexpr int kGroup = 4, kTogether = 1;
  static constexpr int kWide = 1, kWideTogether = 1;
  static constexpr int kPixelsTogether = 0, kPointsTogether = 0;
  static constexpr int kSharedTogether = 1;
  static constexpr int size(int port) { return port == 0 ? 4 : port == 1 ? 4 : port == 2 ? 4 : 1; }
  static constexpr int channels(int port) { return port == 0 ? 1 : port == 1 ? 1 : port == 2 ? 1 : 1; }
  static constexpr int saturates(int port) { return port == 0 ? 0 : port == 1 ? 0 : port == 2 ? 0 : 1; }
  static constexpr int kByteTable = -1;
  struct Numbers {
    const int32_t v0;
    STOKER_DEVICE explicit Numbers([[maybe_unused]] const Row<Program>& row) : v0(row.template uniform<int32_t>(0)) {}
    STOKER_DEVICE int32_t u0() const { return v0; }
  };
  template <class Lane>
  static STOKER_DEVICE void run(const Lane& lane, [[maybe_unused]] const Numbers& n,
                                [[maybe_unused]] bool& fault) {
    const int32_t r0 = lane.template load<I32>(0, 0);
    const int32_t r1 = lane.template load<I32>(1, 0);
    const int32_t r2 = op::idiv(r0, r1, fault);
    const int32_t r3 = op::lt(r2, n.u0());
    const int32_t r4 = op::select(r2, r1, r3);
    const int32_t r5 = op::cast<U8>(r2);
    lane.template store<I32>(0, 0, r4);
    lane.template store_cast<U8>(1, 0, r2);
  }
};

}  // namespace stoker::stage

STOKER_STAGE(stoker::stage::Program, 3)
