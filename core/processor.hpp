// Which instructions an x86 processor has.
#pragma once
#include <cpuid.h>

namespace linrank {

/// Asked of the processor itself: __builtin_cpu_supports needs a part of the run-time library that not every
/// compiler brings along.
class Processor {
  public:
    static constexpr unsigned saves_ymm = 0x06, saves_zmm = 0xe6;  // bits of XCR0

    Processor() {
        unsigned a, b, c, d;
        if (!__get_cpuid(1, &a, &b, &c, &d)) return;
        first_ = c;
        if (first_ & bit_OSXSAVE) __asm__("xgetbv" : "=a"(saved_), "=d"(d) : "c"(0));
        if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) seventh_ = b;
    }
    /// Whether it has these bits of leaf 1 (ecx) and leaf 7 (ebx), and the system saves these registers.
    bool has(unsigned first, unsigned seventh = 0, unsigned saved = 0) const {
        return (first_ & first) == first && (seventh_ & seventh) == seventh && (saved_ & saved) == saved;
    }

  private:
    unsigned first_ = 0, seventh_ = 0, saved_ = 0;
};

}  // namespace linrank
