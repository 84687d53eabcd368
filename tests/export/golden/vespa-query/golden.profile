rank-profile golden inherits default {
    inputs {
        query(w_bm25_title) double: 0.5
        query(m_bm25_title) double: 5.0
        query(w_age) double: -4.0
        query(m_age) double: -1.0
        query(w_length) double: 0.0015
        query(m_length) double: 3.75
    }
    first-phase {
        expression {
            if (isNan(bm25_title), query(m_bm25_title), query(w_bm25_title) * bm25_title) +
            if (isNan(age), query(m_age), query(w_age) * age) +
            if (isNan(length), query(m_length), query(w_length) * length)
        }
    }
}
