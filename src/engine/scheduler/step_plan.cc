#include "engine/scheduler/step_plan.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "foundation/base/random.h"

namespace tandem::scheduler {
namespace {

// "TDPL" and the version of this layout.
constexpr std::uint32_t kMagic = 0x4C504454;
constexpr std::uint32_t kVersion = 1;
static_assert(std::endian::native == std::endian::little, "messages are little-endian memory");

class Writer {
 public:
  explicit Writer(std::vector<std::uint8_t>& out) : out_(out) {}

  template <typename T>
  void number(const T& value) {
    static_assert(std::is_arithmetic_v<T>);
    raw(&value, sizeof value);
  }

  template <typename T>
  void number_list(const std::vector<T>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    raw(values.data(), values.size() * sizeof(T));
  }

  template <typename T, typename WriteOne>
  void list(const std::vector<T>& items, WriteOne write_one) {
    number(static_cast<std::uint32_t>(items.size()));
    for (const T& item : items) {
      write_one(item);
    }
  }

 private:
  void raw(const void* data, std::size_t n_bytes) {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    out_.insert(out_.end(), bytes, bytes + n_bytes);
  }

  std::vector<std::uint8_t>& out_;
};

// Reads zeros once the bytes have ended; ok() tells.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

  template <typename T>
  T number() {
    T value{};
    raw(&value, sizeof value);
    return value;
  }

  template <typename T>
  std::vector<T> number_list() {
    std::vector<T> values(count(sizeof(T)));
    raw(values.data(), values.size() * sizeof(T));
    return values;
  }

  template <typename T, typename ReadOne>
  std::vector<T> list(ReadOne read_one) {
    std::vector<T> items;
    for (std::size_t n = count(sizeof(std::uint32_t)); n > 0 && ok_; --n) {
      items.push_back(read_one());
    }
    return items;
  }

 private:
  // A count that the bytes left can hold.
  std::size_t count(std::size_t item_bytes) {
    const auto n = static_cast<std::size_t>(number<std::uint32_t>());
    if (n * item_bytes > bytes_.size()) {
      ok_ = false;
      return 0;
    }
    return n;
  }

  void raw(void* data, std::size_t n_bytes) {
    if (!ok_ || n_bytes > bytes_.size()) {
      ok_ = false;
      return;
    }
    if (n_bytes > 0) {
      std::memcpy(data, bytes_.data(), n_bytes);
      bytes_ = bytes_.subspan(n_bytes);
    }
  }

  std::span<const std::uint8_t> bytes_;
  bool ok_ = true;
};

void write(Writer& out, const SnapshotTransfer& transfer) {
  out.number(transfer.slot);
  out.number(transfer.position);
  out.number(transfer.snapshot);
}

SnapshotTransfer read_transfer(Reader& in) {
  SnapshotTransfer transfer;
  transfer.slot = in.number<std::int32_t>();
  transfer.position = in.number<Position>();
  transfer.snapshot = in.number<std::int32_t>();
  return transfer;
}

void write(Writer& out, const PageAssignment& assignment) {
  out.number(assignment.slot);
  out.number(assignment.first_entry);
  out.number_list(assignment.pages);
}

PageAssignment read_assignment(Reader& in) {
  PageAssignment assignment;
  assignment.slot = in.number<std::int32_t>();
  assignment.first_entry = in.number<std::int64_t>();
  assignment.pages = in.number_list<PageId>();
  return assignment;
}

void write(Writer& out, const PlanSegment& segment) {
  out.number(segment.sequence);
  out.number(segment.slot);
  out.number(segment.first_position);
  out.number_list(segment.tokens);
  out.number(segment.n_drafts);
  out.number(segment.n_logit_rows);
}

PlanSegment read_segment(Reader& in) {
  PlanSegment segment;
  segment.sequence = in.number<SequenceId>();
  segment.slot = in.number<std::int32_t>();
  segment.first_position = in.number<Position>();
  segment.tokens = in.number_list<TokenId>();
  segment.n_drafts = in.number<std::int32_t>();
  segment.n_logit_rows = in.number<std::int32_t>();
  return segment;
}

void write(Writer& out, const DraftSegment& segment) {
  out.number(segment.first_row);
  out.number(segment.n_rows);
  out.number(segment.next_token);
  out.number(segment.n_drafts);
  out.number(segment.next_position);
  out.number(segment.temperature);
  out.number(segment.seed);
}

DraftSegment read_draft(Reader& in) {
  DraftSegment segment;
  segment.first_row = in.number<std::int32_t>();
  segment.n_rows = in.number<std::int32_t>();
  segment.next_token = in.number<TokenId>();
  segment.n_drafts = in.number<std::int32_t>();
  segment.next_position = in.number<Position>();
  segment.temperature = in.number<float>();
  segment.seed = in.number<std::uint64_t>();
  return segment;
}

void write_body(Writer& out, const ControlMessage& message) {
  const auto write_one = [&out](const auto& item) { write(out, item); };
  if (message.kind == MessageKind::kStep) {
    out.list(message.step.saves, write_one);
    out.number_list(message.step.cleared_slots);
    out.list(message.step.assignments, write_one);
    out.list(message.step.restores, write_one);
    out.list(message.step.segments, write_one);
  } else if (message.kind == MessageKind::kDraft) {
    out.list(message.draft.segments, write_one);
  }
}

ControlMessage read_body(Reader& in, MessageKind kind) {
  ControlMessage message;
  message.kind = kind;
  if (kind == MessageKind::kStep) {
    message.step.saves = in.list<SnapshotTransfer>([&in] { return read_transfer(in); });
    message.step.cleared_slots = in.number_list<std::int32_t>();
    message.step.assignments = in.list<PageAssignment>([&in] { return read_assignment(in); });
    message.step.restores = in.list<SnapshotTransfer>([&in] { return read_transfer(in); });
    message.step.segments = in.list<PlanSegment>([&in] { return read_segment(in); });
  } else if (kind == MessageKind::kDraft) {
    message.draft.segments = in.list<DraftSegment>([&in] { return read_draft(in); });
  }
  return message;
}

std::uint64_t hash_bytes(std::uint64_t hash, std::span<const std::uint8_t> bytes) {
  hash = mix64(hash ^ bytes.size());
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); i += sizeof word) {
    word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    hash = mix64(hash ^ word);
  }
  return hash;
}

}  // namespace

std::int64_t StepPlan::n_rows() const {
  std::int64_t n = 0;
  for (const PlanSegment& segment : segments) {
    n += static_cast<std::int64_t>(segment.tokens.size());
  }
  return n;
}

std::vector<std::uint8_t> MessageChain::encode(const ControlMessage& message) {
  std::vector<std::uint8_t> bytes;
  Writer out(bytes);
  out.number(kMagic);
  out.number(kVersion);
  out.number(n_messages_);
  out.number(static_cast<std::uint8_t>(message.kind));
  write_body(out, message);
  hash_ = hash_bytes(hash_, bytes);
  ++n_messages_;
  out.number(hash_);
  return bytes;
}

Result<ControlMessage> MessageChain::decode(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kHashBytes = sizeof(std::uint64_t);
  if (bytes.size() < kHashBytes) {
    return data_loss("control message of {} bytes is too short", bytes.size());
  }
  const auto body = bytes.first(bytes.size() - kHashBytes);
  const auto sent_hash = Reader(bytes.last(kHashBytes)).number<std::uint64_t>();
  Reader in(body);
  const auto magic = in.number<std::uint32_t>();
  const auto version = in.number<std::uint32_t>();
  if (magic != kMagic || version != kVersion) {
    return data_loss(
        "control message has magic {:x} version {}, expected {:x} version {}; run the "
        "same build on all ranks",
        magic, version, kMagic, kVersion);
  }
  const auto number = in.number<std::uint64_t>();
  if (number != n_messages_) {
    return data_loss("control message {} arrived, expected {}: a message was lost", number,
                     n_messages_);
  }
  const std::uint64_t hash = hash_bytes(hash_, body);
  if (hash != sent_hash) {
    return data_loss(
        "control message {}: hash {:016x}, rank 0 sent {:016x}: the ranks have drifted", number,
        hash, sent_hash);
  }
  const auto kind = in.number<std::uint8_t>();
  if (kind < static_cast<std::uint8_t>(MessageKind::kStep) ||
      kind > static_cast<std::uint8_t>(MessageKind::kShutdown)) {
    return data_loss("control message {} has the unknown kind {}", number, kind);
  }
  ControlMessage message = read_body(in, static_cast<MessageKind>(kind));
  if (!in.at_end()) {
    return data_loss("control message {}: the body does not end where it should", number);
  }
  hash_ = hash;
  ++n_messages_;
  return message;
}

}  // namespace tandem::scheduler
