// The router of one token, and the address of one expert. Both CPU implementations use these.
#pragma once

#include <cstdint>

#include "compute/kernels/kernels.h"

namespace tandem::cpu {

// sqrt(softplus(x)) without overflow for large x or loss for small x. SOURCE: model.md 2.11, T31.
double sqrt_softplus(double x);

// Fills experts and weights of row t. Experts come in falling order of score (ties: lowest id) or
// in the order of tid2eid. SOURCE: model.md 2.11.
void route_token(const kernels::RouteArgs& args, std::int64_t t);

// Matrix of expert e.
tensor::WeightMatrix expert_of(const kernels::ExpertStack& stack, std::int64_t e);

}  // namespace tandem::cpu
