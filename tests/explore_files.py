"""Runs a fuzzer of fuzz_files.py guided by coverage, with Atheris (`make fuzzers` installs it).

    python tests/explore_files.py manifest build/corpus/manifest tests/corpus/manifest -runs=1000000

All but the first word goes to libFuzzer: folders of inputs, of which the first takes the new ones,
and options.
"""

import sys

import atheris

with atheris.instrument_imports(include=["linrank"]):
    from fuzz_files import FUZZERS, corpus

    for name, fuzzer in FUZZERS.items():  # modules that are imported on first use
        for content in corpus(name):
            fuzzer(content)


def main() -> None:
    fuzzer = FUZZERS[sys.argv.pop(1)]

    def test_one_input(content: bytes) -> None:
        fuzzer(content)

    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
