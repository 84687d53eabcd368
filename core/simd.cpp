#include "simd.hpp"

namespace linrank {

namespace baseline { extern const Kernels table; }
#ifdef LINRANK_X86
namespace avx2 { extern const Kernels table; }
namespace avx512 { extern const Kernels table; }
#endif

namespace {
const Kernels &choose() {
#ifdef LINRANK_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        return avx512::table;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::table;
#endif
    return baseline::table;
}
}  // namespace

const Kernels &kernels() {
    static const Kernels &chosen = choose();
    return chosen;
}

}  // namespace linrank
