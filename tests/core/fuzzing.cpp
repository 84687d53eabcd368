// Runs a fuzzer without libFuzzer: through its corpus, then through random damage to it.
//
//   fuzz_x corpus [seconds [seed]]
//
// `corpus` is a folder of inputs; `corpus`.dict, if there, has words to insert, as libFuzzer reads them. An
// input that breaks something is left in crash-fuzz_x.
#include "fuzzing.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

std::string name;
std::string input;

[[noreturn]] void keep_input(int) {
    const std::string path = "crash-" + name;
    std::ofstream(path, std::ios::binary) << input;
    std::fprintf(stderr, "%s: the input is in %s\n", name.c_str(), path.c_str());
    std::_Exit(1);
}

void run_input() {
    // A copy of exactly its size: reading on behind it is noticed.
    const auto exact = std::make_unique<std::uint8_t[]>(input.size());
    std::copy(input.begin(), input.end(), exact.get());
    LLVMFuzzerTestOneInput(exact.get(), input.size());
}

std::string contents(const std::filesystem::path &path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> read_corpus(const std::filesystem::path &folder) {
    std::vector<std::filesystem::path> paths;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());  // the same order everywhere, for the seed to mean something
    std::vector<std::string> inputs;
    for (const auto &path : paths) inputs.push_back(contents(path));
    return inputs;
}

/// The words of a dictionary: a line each, in quotes, with \xNN, \" and \\ for bytes of their own.
std::vector<std::string> read_dictionary(const std::filesystem::path &path) {
    std::vector<std::string> words;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] != '"') continue;
        std::string word;
        for (std::size_t k = 1; k + 1 < line.size(); ++k) {
            if (line[k] == '\\' && line[k + 1] == 'x') {
                word += static_cast<char>(std::stoi(line.substr(k + 2, 2), nullptr, 16));
                k += 3;
            } else {
                word += line[k] == '\\' ? line[++k] : line[k];
            }
        }
        words.push_back(word);
    }
    return words;
}

/// Inputs of the corpus, damaged.
class Mutator {
public:
    Mutator(std::uint64_t seed, std::vector<std::string> corpus, std::vector<std::string> words)
        : random(seed), corpus(std::move(corpus)), words(std::move(words)) {}

    void next(std::string &input) {
        input = corpus[below(corpus.size())];
        if (below(4) == 0) input += corpus[below(corpus.size())];
        for (auto n = below(6); n > 0; --n) mutate(input);
    }

private:
    std::mt19937_64 random;
    std::vector<std::string> corpus, words;

    std::size_t below(std::size_t n) { return static_cast<std::size_t>(random() % n); }

    void mutate(std::string &input) {
        const std::size_t at = below(input.size() + 1);
        switch (below(9)) {
        case 0: if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8))); break;
        case 1: if (at < input.size()) input[at] = static_cast<char>(below(256)); break;
        case 2: input.resize(at); break;
        case 3: input.erase(at, below(20) + 1); break;
        case 4: input.insert(at, input.substr(below(input.size() + 1), below(40))); break;
        case 5: input.insert(at, digits()); break;
        case 6: input.insert(at, part()); break;
        case 7: input.replace(at, below(20), part()); break;
        default: if (!words.empty()) input.insert(at, words[below(words.size())]);
        }
    }

    std::string part() {
        const std::string &other = corpus[below(corpus.size())];
        return other.substr(below(other.size() + 1), below(60));
    }

    /// Now and then more than any number has.
    std::string digits() {
        std::string run(below(below(64) == 0 ? 500 : 30), '0');
        for (char &c : run) c = static_cast<char>('0' + below(10));
        return run;
    }
};

}  // namespace

int main(int argc, char **argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s corpus [seconds [seed]]\n", argv[0]);
        return 2;
    }
    const std::filesystem::path folder = argv[1];
    const double seconds = argc > 2 ? std::atof(argv[2]) : 0.0;
    const auto seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
    name = std::filesystem::path(argv[0]).filename().string();
    std::signal(SIGABRT, keep_input);

    const std::vector<std::string> corpus = read_corpus(folder);
    if (corpus.empty()) {
        std::fprintf(stderr, "%s: no inputs in %s\n", name.c_str(), argv[1]);
        return 2;
    }
    for (const std::string &kept : corpus) input = kept, run_input();

    Mutator mutator(seed, corpus, read_dictionary(folder.string() + ".dict"));
    const auto start = std::chrono::steady_clock::now();
    long long n_inputs = 0;
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
        mutator.next(input);
        run_input();
        ++n_inputs;
    }
    std::printf("%s: %zu inputs of the corpus, %lld damaged ones, seed %llu, clean\n", name.c_str(),
                corpus.size(), n_inputs, seed);
    return 0;
}
