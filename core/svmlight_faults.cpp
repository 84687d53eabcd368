#include "svmlight_faults.hpp"

#include "trec.hpp"

namespace linrank::svmlight {

namespace {

bool ends_token(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '#';
}

/// Whether `word` starts at p, in any case.
bool starts_with(const char *p, const char *word) {
    for (; *word; ++p, ++word)
        if ((*p | 0x20) != *word) return false;
    return true;
}

}  // namespace

void fail(const char *at, std::string message) { throw FaultAt{at, std::move(message)}; }

std::string quote_token(const char *p) {
    constexpr int longest = 24;
    if (*p == '\n' || (*p == '\r' && p[1] == '\n')) return "the end of the line";
    if (*p == ' ' || *p == '\t' || *p == '\r') return "a blank";
    std::string text = "'";
    const char *const start = p;
    do {
        trec::append_printable(*p++, text);
    } while (!ends_token(*p) && p - start < longest);
    return text + (ends_token(*p) ? "'" : "...'");
}

void fail_number(const char *p, decimal::Outcome outcome, const std::string &what, const char *type) {
    const char *const unsigned_part = p + (*p == '-' || *p == '+');
    if (outcome == decimal::Outcome::overflow)
        fail(p, what + " is out of the range of a " + type + " float: " + quote_token(p));
    if (starts_with(unsigned_part, "inf") || starts_with(unsigned_part, "nan"))
        fail(p, what + " is " + quote_token(p) + "; expected a finite number");
    fail(p, "expected a number for " + what + ", got " + quote_token(p));
}

void fail_feature(const char *p, Index last) {
    if (std::memcmp(p, "qid:", 4) == 0) fail(p, "the query id must come once, right behind the label");
    const char *end = p + (*p == '-');
    const bool negative = end != p;
    Index index = 0;
    const char *const digits = end;
    for (; decimal::is_digit(*end); ++end)
        if (index <= max_feature) index = index * 10 + (*end - '0');
    if (end == digits) fail(p, "expected a feature as index:value, got " + quote_token(p));
    const std::string name(digits, std::size_t(end - digits < 24 ? end - digits : 24));
    if (*end != ':')
        fail(end, "expected ':' and a value behind feature index " + name + ", got " + quote_token(end));
    if (negative) fail(p, "feature index -" + name + " is negative; indices start at 0 or 1");
    if (index > max_feature)
        fail(p, "feature index " + name + " is too large; the largest is " + std::to_string(max_feature));
    if (index == last)
        fail(p, "feature " + name + " is given twice; indices must increase within a line");
    fail(p, "feature " + name + " follows " + std::to_string(last) +
                "; indices must increase within a line");
}

void fail_after_value(const char *p, Index last) {
    fail(p, "unexpected " + quote_token(p) + " right behind " +
                (last < 0 ? std::string("the label or query id")
                          : "the value of feature " + std::to_string(last)) +
                "; expected a blank or the end of the line");
}

void fail_range(const char *p, Range range) {
    for (;;) {
        while (*p == ' ' || *p == '\t' || *p == '\r') ++p;
        Index index = 0;
        for (const char *q = p; *q != ':'; ++q) index = index * 10 + (*q - '0');
        if (index < range.lowest || index > range.highest)
            fail(p, "feature index " + std::to_string(index) + " is out of range; expected " +
                        std::to_string(range.lowest) + " to " + std::to_string(range.highest));
        while (!ends_token(*p)) ++p;
    }
}

std::string mixed_queries(bool has_query) {
    return has_query ? "a query id where the lines before have none; give every line one, or none"
                     : "no query id where the lines before have one; give every line one, or none";
}

}  // namespace linrank::svmlight
