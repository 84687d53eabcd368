#include "simd.hpp"

#ifdef LINRANK_X86
#include "processor.hpp"
#endif

namespace linrank {

namespace baseline { extern const Simd table; }
#ifdef LINRANK_X86
namespace avx2 { extern const Simd table; }
namespace avx512 { extern const Simd table; }
#endif

namespace {
const Simd &choose() {
#ifdef LINRANK_X86
    const Processor processor;
    constexpr unsigned fused = bit_FMA | bit_F16C;
    if (processor.has(fused, bit_AVX2 | bit_AVX512F | bit_AVX512DQ | bit_AVX512VL | bit_AVX512BW, Processor::saves_zmm))
        return avx512::table;
    if (processor.has(fused, bit_AVX2, Processor::saves_ymm)) return avx2::table;
#endif
    return baseline::table;
}
}  // namespace

const Simd &simd() {
    static const Simd &chosen = choose();
    return chosen;
}

}  // namespace linrank
