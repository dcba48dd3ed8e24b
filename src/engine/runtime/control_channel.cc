#include "engine/runtime/control_channel.h"

#include <algorithm>
#include <array>

namespace tandem::runtime {
namespace {

constexpr std::size_t kHostChars = 64;
constexpr std::size_t kDigits = 4;  // 16 bits each: exact in a float

struct NamedSize {
  const char* name;
  std::int64_t value;
};

std::vector<NamedSize> named(const ForwardSizes& sizes) {
  return {{"vocab", sizes.vocab},
          {"max_step_tokens", sizes.max_step_tokens},
          {"max_logit_rows", sizes.max_logit_rows},
          {"n_slots", sizes.n_slots},
          {"max_context_tokens", sizes.max_context_tokens},
          {"n_pages", sizes.n_pages},
          {"page_tokens", sizes.page_tokens},
          {"draft_slack", sizes.draft_slack},
          {"max_drafts", sizes.max_drafts},
          {"snapshot_bytes", sizes.snapshot_bytes}};
}

std::vector<float> card_of(const ForwardSizes& sizes, const std::string& host) {
  std::vector<float> card;
  for (const NamedSize& size : named(sizes)) {
    for (std::size_t digit = 0; digit < kDigits; ++digit) {
      card.push_back(static_cast<float>((size.value >> (16 * digit)) & 0xFFFF));
    }
  }
  for (std::size_t i = 0; i < kHostChars; ++i) {
    card.push_back(i < host.size() ? static_cast<float>(static_cast<unsigned char>(host[i])) : 0);
  }
  return card;
}

std::int64_t size_on(std::span<const float> card, std::size_t field) {
  std::int64_t value = 0;
  for (std::size_t digit = 0; digit < kDigits; ++digit) {
    value |= static_cast<std::int64_t>(card[field * kDigits + digit]) << (16 * digit);
  }
  return value;
}

std::string host_on(std::span<const float> card) {
  std::string host;
  for (const float c : card.last(kHostChars)) {
    if (c != 0.0F) {
      host.push_back(static_cast<char>(static_cast<unsigned char>(c)));
    }
  }
  return host;
}

}  // namespace

void ControlChannel::send(const scheduler::ControlMessage& message) {
  std::vector<std::uint8_t> bytes = chain_.encode(message);
  communicator_.broadcast(bytes);
}

Result<scheduler::ControlMessage> ControlChannel::receive() {
  std::vector<std::uint8_t> bytes;
  communicator_.broadcast(bytes);
  return chain_.decode(bytes);
}

Result<std::vector<std::string>> meet_ranks(comm::Communicator& communicator,
                                            const ForwardSizes& sizes, const std::string& host) {
  const std::vector<float> card = card_of(sizes, host);
  const auto n_ranks = static_cast<std::size_t>(communicator.size());
  std::vector<float> cards(card.size() * n_ranks);
  communicator.all_gather(card, cards);
  const std::span<const float> all(cards);
  const std::span<const float> first = all.first(card.size());
  std::vector<std::string> hosts;
  for (std::size_t rank = 0; rank < n_ranks; ++rank) {
    const std::span<const float> other = all.subspan(rank * card.size(), card.size());
    const std::vector<NamedSize> names = named(sizes);
    for (std::size_t field = 0; field < names.size(); ++field) {
      if (size_on(other, field) != size_on(first, field)) {
        return failed_precondition(
            "rank {} ({}) has {} = {}, rank 0 ({}) has {}; start all ranks with the same model and "
            "config",
            rank, host_on(other), names[field].name, size_on(other, field), host_on(first),
            size_on(first, field));
      }
    }
    hosts.push_back(host_on(other));
  }
  return hosts;
}

}  // namespace tandem::runtime
