rank-profile golden inherits default {
    first-phase {
        expression {
            if (isNan(bm25_title), 5.0, 0.5 * bm25_title) +
            if (isNan(age), -1.0, -4.0 * age) +
            if (isNan(length), 3.75, 0.0015 * length)
        }
    }
}
