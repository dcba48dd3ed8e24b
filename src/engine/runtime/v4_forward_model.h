// V4ForwardModel: V4Model as the step loop sees it.
#pragma once

#include <memory>

#include "engine/runtime/forward_model.h"

namespace tandem::runtime {

// `model` outlives the result.
std::unique_ptr<ForwardModel> make_v4_forward_model(v4::V4Model& model);

}  // namespace tandem::runtime
