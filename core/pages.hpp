// Large arrays straight from the system.
#pragma once
#include <cstdlib>
#include <new>

#include "basics.hpp"

#if defined(__has_feature)  // clang's way of saying what GCC says by __SANITIZE_ADDRESS__
#define LINRANK_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define LINRANK_ASAN 1
#else
#define LINRANK_ASAN 0
#endif
#if defined(__linux__) && !LINRANK_ASAN  // it sees the bounds of what malloc gave, not of pages
#include <sys/mman.h>
#include <sys/sysinfo.h>
#define LINRANK_PAGES 1
#endif

namespace linrank {

inline constexpr std::size_t huge_pages = 1 << 20;  // bytes from which on large pages are asked for

/// An array of fixed size, not initialized. A page that was never written costs nothing, and freed
/// memory goes back to the system at once: a general allocator may keep it, and then the pieces of a
/// data set and the whole would be in memory together.
template <class T>
class PageArray {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    PageArray() = default;
    /// `smallest` is the number of bytes from which on pages are mapped.
    explicit PageArray(std::size_t n, std::size_t smallest = small) : length(n) {
        if (n == 0) return;
        if (n > std::size_t(-1) / 2 / sizeof(T)) throw std::bad_alloc();
        mapped = bytes_to_map(n, smallest);
        start = static_cast<T *>(mapped ? map(mapped) : std::malloc(n * sizeof(T)));
        if (start == nullptr) throw std::bad_alloc();
    }
    PageArray(PageArray &&other) noexcept { swap(other); }
    PageArray &operator=(PageArray other) noexcept {
        swap(other);
        return *this;
    }
    ~PageArray() {
        if (mapped) unmap(reinterpret_cast<std::byte *>(start), mapped);
        else std::free(start);
    }

    T *data() { return start; }
    const T *data() const { return start; }
    std::size_t size() const { return length; }
    bool empty() const { return length == 0; }
    T &operator[](std::size_t i) { return start[i]; }
    const T &operator[](std::size_t i) const { return start[i]; }
    std::span<const T> view() const { return {start, length}; }

    void free() { *this = PageArray(); }

    static constexpr std::size_t small = 1 << 14;  // bytes below which a page of its own is a waste

private:

    T *start = nullptr;
    std::size_t length = 0;
    std::size_t mapped = 0;  // bytes mapped, 0 when the memory came from malloc

    void swap(PageArray &other) noexcept {
        std::swap(start, other.start);
        std::swap(length, other.length);
        std::swap(mapped, other.mapped);
    }
#if defined(LINRANK_PAGES)
    static std::size_t bytes_to_map(std::size_t n, std::size_t smallest) {
        return n * sizeof(T) < smallest ? 0 : n * sizeof(T);
    }
    /// Pages are not set aside, so that a mapping of any size succeeds: what the machine can never have is
    /// refused here, for else the system would end the process once enough of it is written.
    static bool can_hold(std::size_t bytes) {
        struct sysinfo machine;
        if (sysinfo(&machine) != 0) return true;
        return bytes / machine.mem_unit <= machine.totalram + machine.totalswap;
    }
    static void *map(std::size_t bytes) {
        if (!can_hold(bytes)) return nullptr;
        void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) return nullptr;
        // Advice only: a first touch per 2 MB instead of per 4 kB, a quarter of the reading time.
        if (bytes >= huge_pages) madvise(p, bytes, MADV_HUGEPAGE);
        return p;
    }
    static void unmap(std::byte *p, std::size_t bytes) { munmap(p, bytes); }
#else
    static std::size_t bytes_to_map(std::size_t, std::size_t) { return 0; }
    static void *map(std::size_t) { return nullptr; }
    static void unmap(std::byte *, std::size_t) {}
#endif
};

/// Memory for vectors that are read all over the place: in large pages, a read does not wait for the table of
/// the pages as well.
template <class T>
struct LargePages {
    using value_type = T;
    static constexpr std::size_t page = 1 << 21;

    LargePages() = default;
    template <class Other>
    LargePages(const LargePages<Other> &) {}

    T *allocate(std::size_t n) {
        if (n > std::size_t(-1) / 2 / sizeof(T)) throw std::bad_alloc();
        const std::size_t alignment = n * sizeof(T) >= page ? page : line;
        const std::size_t bytes = (n * sizeof(T) + alignment - 1) / alignment * alignment;
        void *p = std::aligned_alloc(alignment, bytes);
        if (p == nullptr) throw std::bad_alloc();
#if defined(LINRANK_PAGES)
        if (alignment == page) madvise(p, bytes, MADV_HUGEPAGE);  // advice only
#endif
        return static_cast<T *>(p);
    }
    void deallocate(T *p, std::size_t) { std::free(p); }
    bool operator==(const LargePages &) const { return true; }

private:
    static constexpr std::size_t line = alignof(T) > 64 ? alignof(T) : 64;
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

}  // namespace linrank
