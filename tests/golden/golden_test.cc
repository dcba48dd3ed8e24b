// The model against numbers that it did not make: Hugging Face transformers and our own PyTorch
// module, both in float32. Tolerances and their reasons: docs/NUMERICS.md; format: README.md here.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "foundation/json/json.h"
#include "tests/support/model_rig.h"
#include "tests/support/safetensors_file.h"

namespace tandem::v4 {
namespace {

using testing::greedy;
using testing::max_difference;
using testing::ModelRig;
using testing::relative_l2;
using testing::SafetensorsFile;

constexpr double kLogitTolerance = 2e-3;   // relative L2
constexpr double kStreamTolerance = 2e-3;  // relative L2 of one position's streams
constexpr double kWeightTolerance = 1e-3;  // of a routing weight, absolute
constexpr double kNearTie = 1e-3;  // own_logits_max_diff above it: a tie was cut differently
constexpr double kMarginTolerance = 2e-3;  // logit or score distances below it may turn over
constexpr std::size_t kStepTokens = 512;

struct GoldenCase {
  const char* checkpoint;
  int n_prompt;
  int n_ranks;
};

std::string case_name(const ::testing::TestParamInfo<GoldenCase>& info) {
  std::string name = info.param.checkpoint;
  std::replace(name.begin(), name.end(), '-', '_');
  return name + "_" + std::to_string(info.param.n_prompt) + "_tp" +
         std::to_string(info.param.n_ranks);
}

double manifest_number(const std::filesystem::path& path, const char* key) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const auto parsed = json::parse(text.str());
  EXPECT_TRUE(parsed.ok());
  return json::find(*parsed, key)->to_number<double>();
}

// Keeps what the golden file has: some positions of the whole prompt.
class Recorder final : public StepObserver {
 public:
  explicit Recorder(const std::vector<std::int32_t>& positions)
      : positions_(positions.begin(), positions.end()) {}

  void set_step(Position first, std::size_t n) {
    first_ = first;
    n_ = static_cast<Position>(n);
  }

  void on_layer(std::int32_t layer, std::span<const float> values) override {
    visit(values, [&](Position position, std::span<const float> row) {
      streams[{layer, position}].assign(row.begin(), row.end());
    });
  }

  void on_experts(std::int32_t layer, std::span<const std::int32_t> chosen) override {
    visit(chosen, [&](Position position, std::span<const std::int32_t> row) {
      experts[{layer, position}] = std::set<std::int32_t>(row.begin(), row.end());
    });
  }

  void on_selected(std::int32_t layer, std::span<const std::int32_t> selected,
                   std::span<const std::int32_t> n_selected) override {
    visit(selected, [&](Position position, std::span<const std::int32_t> row) {
      const auto n =
          static_cast<std::size_t>(n_selected[static_cast<std::size_t>(position - first_)]);
      rows[{layer, position}] =
          std::set<std::int32_t>(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(n));
    });
  }

  std::map<std::pair<std::int32_t, Position>, std::vector<float>> streams;
  std::map<std::pair<std::int32_t, Position>, std::set<std::int32_t>> experts;
  std::map<std::pair<std::int32_t, Position>, std::set<std::int32_t>> rows;

 private:
  template <typename T, typename Keep>
  void visit(std::span<const T> values, Keep keep) {
    const std::size_t width = values.size() / static_cast<std::size_t>(n_);
    for (const Position position : positions_) {
      if (position >= first_ && position < first_ + n_) {
        keep(position, values.subspan(static_cast<std::size_t>(position - first_) * width, width));
      }
    }
  }

  std::set<Position> positions_;
  Position first_ = 0;
  Position n_ = 1;
};

class Golden : public ::testing::TestWithParam<GoldenCase> {
 protected:
  Golden() : golden_(path(".safetensors")), prompt_(golden_.i32("prompt_ids")) {
    testing::RigOptions options;
    options.model = std::string(TANDEM_SOURCE_DIR "/models/") + GetParam().checkpoint;
    options.n_ranks = GetParam().n_ranks;
    options.limits.max_step_tokens = kStepTokens;
    options.limits.max_logit_rows = 4;
    options.limits.n_slots = 1;
    options.limits.max_context_tokens = static_cast<std::int64_t>(prompt_.size()) + 64;
    options.limits.n_pages = cache::pages_for(options.limits.max_context_tokens);
    rig_ = std::make_unique<ModelRig>(options);
    tied_ = manifest_number(path(".json"), "own_logits_max_diff") > kNearTie;
  }

  std::filesystem::path path(const char* ending) const {
    return std::string(TANDEM_SOURCE_DIR "/tests/golden/data/") + GetParam().checkpoint + "/" +
           fmt::format("p{:05}", GetParam().n_prompt) + ending;
  }

  // Reads the prompt in steps, keeping the drafter's caches up to date; the last step's logits.
  // next: the token that follows the prompt.
  std::vector<float> read_prompt(Recorder& recorder, std::int32_t n_drafts, TokenId next,
                                 ModelRig::Drafts* drafts) {
    std::vector<float> logits;
    for (std::size_t first = 0; first < prompt_.size(); first += kStepTokens) {
      const std::size_t n = std::min(kStepTokens, prompt_.size() - first);
      recorder.set_step(static_cast<Position>(first), n);
      logits = rig_->run(0, prompt_, first, n);
      const bool last = first + n == prompt_.size();
      *drafts = rig_->draft(
          {0, static_cast<std::int32_t>(n), last ? next : prompt_[first + n], last ? n_drafts : 0});
    }
    return logits;
  }

  void compare_streams(const Recorder& recorder) {
    const std::vector<float> golden = golden_.f32("streams");
    const std::vector<std::int32_t> positions = golden_.i32("stream_positions");
    const auto width = static_cast<std::size_t>(rig_->config().hc_width());
    for (std::int32_t layer = 0; layer < rig_->config().n_layers; ++layer) {
      for (std::size_t i = 0; i < positions.size(); ++i) {
        const std::size_t at = (static_cast<std::size_t>(layer) * positions.size() + i) * width;
        EXPECT_LE(relative_l2(recorder.streams.at({layer, positions[i]}),
                              std::span(golden).subspan(at, width)),
                  kStreamTolerance)
            << "layer " << layer << ", position " << positions[i];
      }
    }
  }

  void compare_experts(const Recorder& recorder) {
    const std::vector<std::int32_t> golden = golden_.i32("route_ids");
    const std::vector<std::int32_t> positions = golden_.i32("last_positions");
    const auto top_k = static_cast<std::size_t>(rig_->config().expert_top_k);
    for (std::int32_t layer = 0; layer < rig_->config().n_layers; ++layer) {
      for (std::size_t i = 0; i < positions.size(); ++i) {
        const auto begin =
            golden.begin() + static_cast<std::ptrdiff_t>(
                                 (static_cast<std::size_t>(layer) * positions.size() + i) * top_k);
        EXPECT_EQ(recorder.experts.at({layer, positions[i]}),
                  std::set<std::int32_t>(begin, begin + static_cast<std::ptrdiff_t>(top_k)))
            << "layer " << layer << ", position " << positions[i];
      }
    }
  }

  void compare_rows(const Recorder& recorder) {
    if (!golden_.has("csa_rows")) {
      return;
    }
    const std::vector<std::int32_t> layers = golden_.i32("csa_layers");
    const std::vector<std::int32_t> positions = golden_.i32("last_positions");
    const std::vector<std::int32_t> rows = golden_.i32("csa_rows");
    const std::vector<float> margins = golden_.f32("csa_margins");
    const std::size_t top_k = rows.size() / (layers.size() * positions.size());
    for (std::size_t i = 0; i < layers.size() * positions.size(); ++i) {
      if (margins[i] <= kMarginTolerance) {
        continue;
      }
      const std::int32_t layer = layers[i / positions.size()];
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(i * top_k);
      EXPECT_EQ(recorder.rows.at({layer, positions[i % positions.size()]}),
                std::set<std::int32_t>(begin, begin + static_cast<std::ptrdiff_t>(top_k)))
          << "layer " << layer;
    }
  }

  // Equal tokens up to the first step whose margin is within the tolerance.
  void compare_continuation(const std::vector<float>& first_logits) {
    const std::vector<std::int32_t> golden = golden_.i32("greedy_ids");
    const std::vector<float> margins = golden_.f32("greedy_margins");
    std::vector<TokenId> text = prompt_;
    std::vector<float> logits = first_logits;
    for (std::size_t i = 0; i < golden.size(); ++i) {
      const TokenId token = greedy(logits);
      if (token != golden[i]) {
        EXPECT_LE(margins[i], kMarginTolerance)
            << "step " << i << ": " << token << " for " << golden[i];
        return;
      }
      text.push_back(token);
      logits = rig_->run(0, text, text.size() - 1, 1);
    }
  }

  void compare_mtp(const ModelRig::Drafts& drafts) {
    ASSERT_EQ(drafts.logits.size(), 1U);
    const std::vector<float> golden = golden_.f32("mtp_logits");
    if (tied_) {  // the block reads streams that two right programs did not agree on
      EXPECT_LE(max_difference(drafts.logits[0], golden),
                2 * manifest_number(path(".json"), "own_streams_max_diff"));
    } else {
      EXPECT_LE(relative_l2(drafts.logits[0], golden), kLogitTolerance);
    }
  }

  void compare_dspark(const ModelRig::Drafts& drafts) {
    const std::vector<std::int32_t> tokens = golden_.i32("dspark_tokens");
    const std::vector<float> logits = golden_.f32("dspark_logits");
    const std::vector<float> confidence = golden_.f32("dspark_confidence");
    ASSERT_EQ(drafts.tokens, tokens);
    ASSERT_EQ(drafts.confidences.size(), confidence.size());
    const std::size_t vocab = logits.size() / tokens.size();
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_LE(relative_l2(drafts.logits[i], std::span(logits).subspan(i * vocab, vocab)),
                kLogitTolerance)
          << "slot " << i;
      EXPECT_NEAR(drafts.confidences[i], 1 / (1 + std::exp(-confidence[i])), kWeightTolerance);
    }
  }

  SafetensorsFile golden_;
  std::vector<TokenId> prompt_;
  std::unique_ptr<ModelRig> rig_;
  bool tied_ = false;
};

TEST_P(Golden, MatchesTheReference) {
  std::vector<std::int32_t> positions = golden_.i32("stream_positions");
  const std::vector<std::int32_t> last = golden_.i32("last_positions");
  positions.insert(positions.end(), last.begin(), last.end());
  Recorder recorder(positions);
  rig_->head().set_observer(&recorder);
  const bool mtp = golden_.has("mtp_logits");
  ModelRig::Drafts drafts;
  const std::vector<float> logits =
      read_prompt(recorder, mtp ? 1 : 5, golden_.i32("greedy_ids")[0], &drafts);
  rig_->head().set_observer(nullptr);
  EXPECT_LE(relative_l2(logits, golden_.f32("logits")), kLogitTolerance);
  compare_experts(recorder);
  compare_rows(recorder);
  if (!tied_) {
    compare_streams(recorder);
  }
  if (mtp) {
    compare_mtp(drafts);
  } else {
    compare_dspark(drafts);
  }
  compare_continuation(logits);
}

std::vector<GoldenCase> all_cases() {
  std::vector<GoldenCase> cases;
  for (const int n : {1, 5, 127, 128, 129, 130, 256, 257, 600, 2060, 4100, 9000}) {
    cases.push_back({"nano", n, 1});
  }
  for (const int n : {1, 5, 127, 128, 129, 130, 256, 257, 600}) {
    cases.push_back({"nano-dspark", n, 1});
  }
  for (const int n : {1, 130, 600, 2060}) {
    cases.push_back({"nano", n, 2});
  }
  cases.push_back({"nano-dspark", 257, 2});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, Golden, ::testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace tandem::v4
