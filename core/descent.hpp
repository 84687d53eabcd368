// Stochastic pairwise descent: learners that take a step on one pair of rows after another.
#pragma once

#include "simd.hpp"
#include "pair_sampler.hpp"

namespace linrank {

/// One or several models that learn from the same stream of pairs.
///
/// The result of many steps does not depend on how they were divided into calls, nor on the number of
/// threads: models are taken in groups of `lanes`, a group is the work of one thread, and each draws the
/// stream anew.
class Descent {
  public:
    /// The vectors of a model as they are kept, and its scalars.
    struct Vectors {
        std::vector<double> v, z;  // z is empty if nothing is averaged
    };

    /// All models start at w = 0; `first_step` is in their t.
    Descent(Index n_columns, std::span<const Learner> learners, Average average);

    Index n_columns() const { return n_columns_; }
    Index n_models() const { return n_models_; }
    Index n_steps() const { return n_steps_; }
    Average average() const { return average_; }

    /// n_steps steps on pairs drawn from the sampler, whose rows exist. The random numbers move on.
    void run(const Rows &rows, const PairSampler &sampler, Random &random, Index n_steps,
             int n_threads);
    /// A step on each of these pairs.
    void step(const Rows &rows, std::span<const RowPair> pairs, int n_threads);

    // Throws std::invalid_argument where there is no such model.

    /// The weights of the model, averaged if iterates are.
    std::vector<double> weights(Index model) const;

    const Learner &learner(Index model) const;
    /// The model goes on by another rule from the weights `w`; its average starts anew,
    /// its losses and updates go on.
    void become(Index model, const Learner &learner, Doubles w);
    /// New columns have weight 0.
    void grow(Index n_columns);

    Vectors vectors(Index model) const;
    /// What learner() and vectors() of another run told; the lengths are right.
    void restore(Index model, const Learner &learner, const Vectors &vectors);
    void set_n_steps(Index n_steps) { n_steps_ = n_steps; }

  private:
    struct Group {
        std::vector<Learner> learners;
        int width;  // 1, or `lanes`
        LargeVector<double> v, z, scratch;  // aligned to 64 bytes, in whole lines of eight
    };

    Index group_of(Index model) const {
        require(model >= 0 && model < n_models_, "there is no model ", model);
        return model / lanes;
    }
    void resize(Group &group, Index n_columns) const;
    /// Steps on pairs, behind which others are known, n_known in all.
    void advance(Group &group, const Rows &rows, std::span<const RowPair> pairs,
                 Index n_known, Index steps_before) const;
    void measure(Group &group) const;

    Index n_columns_, n_models_, n_steps_ = 0;
    Average average_;
    std::vector<Group> groups_;
};

}  // namespace linrank
