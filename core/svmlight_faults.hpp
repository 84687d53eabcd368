// What is wrong with a line, in words. Off the fast path: each looks at the text again.
#pragma once

#include "decimal.hpp"
#include "svmlight.hpp"

namespace linrank::svmlight {

/// Thrown inside the parser only; parse() turns it into a Fault with line and column.
struct FaultAt {
    const char *at;
    std::string message;
};

[[noreturn]] void fail(const char *at, std::string message);

/// The token at p in quotes, cut when long, unprintable bytes as \xNN; or "a blank" or "the end of
/// the line".
std::string quote_token(const char *p);

/// No number, a number that is not finite, or one out of range at p. `what`: "the label".
[[noreturn]] void fail_number(const char *p, decimal::Outcome outcome, const std::string &what,
                              const char *type);

/// No `index:`, or an index that is too large or not above `last`, at p.
[[noreturn]] void fail_feature(const char *p, Index last);

/// Something right behind the value of feature `last` at p, or behind the query id (`last` < 0).
[[noreturn]] void fail_after_value(const char *p, Index last);

/// An index out of `range` among the features that start at p.
[[noreturn]] void fail_range(const char *p, Range range);

/// Only some lines have a query id, and this one has (or has not).
std::string mixed_queries(bool has_query);

}  // namespace linrank::svmlight
