rank-profile golden inherits default {
    first-phase {
        expression {
            2.0 * bm25_title +
            -0.5 * age +
            1.5 * length
        }
    }
}
