// What the fuzzers of text readers share: a mutator of valid lines, reproducible by its seed, and the clock.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace fuzzing {

inline void require(bool ok, const char *what, std::string_view text) {
    if (ok) return;
    std::fprintf(stderr, "broken: %s\nby the text:\n%.*s\n", what, static_cast<int>(text.size()),
                 text.data());
    std::abort();
}

/// Texts of valid lines, damaged.
class Mutator {
public:
    /// `corpus` has `n_sorts` sorts of lines, as many of each, one sort after the other: a text is made of
    /// one. `pieces` are inserted as they are.
    Mutator(std::uint64_t seed, std::span<const std::string> corpus,
            std::span<const char *const> pieces, std::size_t n_sorts = 1)
        : random(seed), corpus(corpus), pieces(pieces), n_sorts(n_sorts) {}

    std::string text() {
        const std::size_t of_a_sort = corpus.size() / n_sorts, first = below(n_sorts) * of_a_sort;
        std::string text;
        for (auto n = below(12) + 1; n > 0; --n) text += corpus[first + below(of_a_sort)];
        for (auto n = below(6); n > 0; --n) mutate(text);
        return text;
    }

private:
    std::mt19937_64 random;
    std::span<const std::string> corpus;
    std::span<const char *const> pieces;
    std::size_t n_sorts;

    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random() % n); }

    void mutate(std::string &text) {
        if (text.empty()) return;
        const std::size_t at = below(text.size());
        switch (below(8)) {
        case 0: text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
        case 1: text[at] = static_cast<char>(below(256)); break;
        case 2: text.resize(at); break;
        case 3: text.erase(at, below(20) + 1); break;
        case 4: text.insert(at, text.substr(below(text.size()), below(40))); break;
        case 5: text.insert(at, digits()); break;
        case 6: text.insert(at, pieces[below(pieces.size())]); break;
        default: text.insert(at, corpus[below(corpus.size())].substr(0, below(60)));
        }
    }

    /// Now and then more than any number has.
    std::string digits() {
        std::string run;
        for (auto n = below(below(8) == 0 ? 500 : 30); n > 0; --n)
            run += static_cast<char>('0' + below(10));
        return run;
    }
};

/// Runs `is_valid(text)` on damaged texts for the seconds of the command line; its second word is the seed.
template <class Test>
int run(const char *name, int argc, char **argv, std::span<const std::string> corpus,
        std::span<const char *const> pieces, std::size_t n_sorts, const Test &is_valid) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 2.0;
    const auto seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    Mutator mutator(seed, corpus, pieces, n_sorts);
    const auto start = std::chrono::steady_clock::now();
    std::int64_t n_texts = 0, n_valid = 0;
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
        n_valid += is_valid(mutator.text()) ? 1 : 0;
        ++n_texts;
    }
    std::printf("%s: %lld texts (%lld valid), seed %llu, clean\n", name,
                static_cast<long long>(n_texts), static_cast<long long>(n_valid), seed);
    return 0;
}

}  // namespace fuzzing
